"""What the checks look at: facts of a service that runs well, of which a test changes some."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from warmfront_forecaster.contract import ServiceForecast
from warmfront_forecaster.planning.types import Binding, Candidates, Decision, DemandReading, ForecastState
from warmfront_operator.domain.checks import Facts
from warmfront_operator.domain.memory import Memory
from warmfront_operator.domain.observation import DemandView, ForecastView, Seen

Make = Callable[..., Any]

KNOWN = DemandView(reading=DemandReading(arrivals_per_second=2.0, prompt_tokens=500.0, output_tokens=100.0))
ANSWER = ServiceForecast(
    namespace="ml",
    name="chat",
    state=ForecastState.TRUSTED,
    reason="SkillShown",
    message="better than the last value on 9 of 10 days",
    upper=3.44,
    median=2.0,
    quantile_percent=95,
)


@pytest.fixture
def make_facts(make_service: Make, make_deployment: Make, make_pod: Make, now: datetime) -> Callable[..., Facts]:
    """A service that runs well; what differs is given."""

    def build(
        *,
        spec: dict[str, Any] | None = None,
        deployment: dict[str, Any] | None = None,
        pods: tuple[Any, ...] | None = None,
        demand: DemandView = KNOWN,
        forecast: ForecastView | None = None,
        decision: dict[str, Any] | None = None,
        **fields: Any,
    ) -> Facts:
        service = make_service(**(spec or {}))
        seen = Seen(
            service=service,
            deployment=make_deployment(**(deployment or {})),
            pods=(make_pod(),) if pods is None else pods,
            demand=demand,
            forecast=forecast or ForecastView(answer=ANSWER),
            now=now,
            tick_seconds=15.0,
        )
        made: dict[str, Any] = {
            "time": now,
            "current": 1,
            "desired": 1,
            "binding": Binding.REACTIVE,
            "reason": "DemandMeasured",
            "message": "demand 0.4 fits one replica",
            "lead_time_seconds": 130.0,
            "candidates": Candidates(),
        }
        values = {
            "service": service,
            "memory": Memory(last_desired=1),
            "seen": seen,
            "decision": Decision(**made | (decision or {})),
        }
        return Facts(**values | fields)

    return build
