"""Forecasts of all services at once: one POST per tick."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

import httpx
from pydantic import ValidationError

from warmfront_forecaster.contract import FORECASTS_PATH, ForecastsRequest, ForecastsResponse, ServiceForecast, ServiceQuery
from warmfront_operator.domain.observation import ForecastView
from warmfront_operator.domain.reasons import ForecastReason
from warmfront_operator.domain.resources import ServiceKey
from warmfront_operator.errors import ForecasterError
from warmfront_operator.metrics import READING_ERRORS, READING_SECONDS


def connect(url: str, timeout_seconds: float) -> httpx.AsyncClient:
    """Make a client. Sends nothing yet.

    Each tick opens its own connection: one that was kept is closed by the server after a few idle seconds, which is just
    when the next tick would use it. No proxy from the environment: the forecaster is in the cluster, a proxy is not.
    """
    limits = httpx.Limits(max_keepalive_connections=0)
    transport = httpx.AsyncHTTPTransport(limits=limits, retries=1, trust_env=False)
    return httpx.AsyncClient(base_url=url, timeout=timeout_seconds, trust_env=False, transport=transport)


@dataclass(frozen=True, kw_only=True)
class Forecasts:
    """Forecasts by service. `reason` and `message` say why one has none."""

    by_service: Mapping[ServiceKey, ServiceForecast] = field(default_factory=dict)
    reason: ForecastReason = ForecastReason.NO_ANSWER
    message: str = "the forecaster has not been asked about this service yet"

    def view(self, key: ServiceKey) -> ForecastView:
        """The forecast of one service."""
        return ForecastView(answer=self.by_service.get(key), reason=self.reason, message=self.message)


@dataclass(frozen=True, kw_only=True)
class ForecastSource:
    """Asks the forecaster. `client` None: none is configured."""

    client: httpx.AsyncClient | None

    async def ask(self, queries: Iterable[ServiceQuery], now: datetime) -> Forecasts:
        """All services' forecasts. Never raises: a failure is in the result."""
        if self.client is None:
            missing = "set WARMFRONT_OPERATOR_FORECASTER_URL to have forecasts"
            return Forecasts(reason=ForecastReason.FORECASTER_NOT_CONFIGURED, message=missing)
        request = ForecastsRequest(now=now, services=list(queries))
        if not request.services:
            return Forecasts()
        start = time.monotonic()
        try:
            answer = await _post(self.client, request)
        except ForecasterError as error:
            READING_ERRORS.labels("forecaster").inc()
            return Forecasts(reason=ForecastReason.FORECASTER_UNAVAILABLE, message=str(error))
        READING_SECONDS.labels("forecaster").observe(time.monotonic() - start)
        return Forecasts(by_service={ServiceKey(item.namespace, item.name): item for item in answer.services})


async def _post(client: httpx.AsyncClient, request: ForecastsRequest) -> ForecastsResponse:
    body, headers = request.model_dump_json(by_alias=True), {"Content-Type": "application/json"}
    try:
        answer = await client.post(FORECASTS_PATH, content=body, headers=headers)
        answer.raise_for_status()
        return ForecastsResponse.model_validate_json(answer.content)
    except httpx.TimeoutException as error:
        raise ForecasterError("the forecaster did not answer in time; it will be asked again") from error
    except httpx.HTTPStatusError as error:
        raise ForecasterError(f"the forecaster answered HTTP {error.response.status_code}; see its log") from error
    except httpx.HTTPError as error:
        raise ForecasterError(
            f"the forecaster cannot be reached ({str(error) or type(error).__name__}); it will be asked again"
        ) from error
    except ValidationError as error:
        raise ForecasterError("the forecaster's answer is not understood: operator and forecaster differ in version") from error
