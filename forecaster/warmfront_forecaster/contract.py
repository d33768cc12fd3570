"""`POST /v1/forecasts`: what the operator asks for once per tick, for all services at once, and what it gets."""

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from warmfront_forecaster.planning.types import ForecastState

FORECASTS_PATH = "/v1/forecasts"
MAX_SERVICES = 10_000


class _Wire(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True, extra="ignore")


class CapacityQuery(_Wire):
    """What one replica does, tokens per second; history is turned into replica-equivalents with it."""

    prefill_tokens_per_second: Annotated[float, Field(gt=0)]
    decode_tokens_per_second: Annotated[float, Field(gt=0)]
    target_utilization: Annotated[float, Field(gt=0, le=1)]


class ServiceQuery(_Wire):
    """One service: which series, and the configuration that the decision takes."""

    namespace: str
    name: str
    capacity: CapacityQuery
    history_days: Annotated[int, Field(ge=2, le=90)] = 28
    quantile_percent: Annotated[int, Field(ge=50, le=99)] = 95
    timezone: str = "UTC"
    lead_time_seconds: Annotated[float, Field(gt=0)]
    tick_seconds: Annotated[float, Field(gt=0)] = 15.0
    replicas: Annotated[int, Field(ge=0)] = 0  # wanted now; a peak is a window that needs more


class ForecastsRequest(_Wire):
    """All services of one operator at one time."""

    now: datetime
    services: Annotated[list[ServiceQuery], Field(max_length=MAX_SERVICES)]


class PeakAnswer(_Wire):
    """A window that needs more replicas than there are now."""

    start: datetime
    end: datetime
    replicas: int


class ServiceForecast(_Wire):
    """The forecast of one service. Demand in replica-equivalents; percent as whole numbers; None: unknown."""

    namespace: str
    name: str
    state: ForecastState
    reason: str
    message: str
    ready_at: datetime | None = None  # when enough history is expected
    model: str | None = None
    quantile_percent: int | None = None
    upper: float | None = None  # quantile of the maximum over (now+L, now+2L+tick)
    median: float | None = None  # median of the maximum over (now, now+L)
    max_demand_seen: float | None = None
    coverage_percent: int | None = None
    skill_percent: int | None = None
    history_seconds: float = 0.0
    as_of: datetime | None = None  # newest sample used
    peaks: list[PeakAnswer] = []


class ForecastsResponse(_Wire):
    """One answer per service asked for, in the same order."""

    services: list[ServiceForecast]
