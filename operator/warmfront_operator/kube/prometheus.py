"""Demand of all services at once: one instant query per figure, whatever the number of services."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from warmfront_forecaster.adapters.prometheus_client import PrometheusError, Sample
from warmfront_forecaster.planning.types import DemandReading
from warmfront_operator.domain.observation import DemandView
from warmfront_operator.domain.resources import ServiceKey
from warmfront_operator.errors import DemandError
from warmfront_operator.metrics import READING_ERRORS, READING_SECONDS

LABEL_NAMESPACE: Final = "inferenceservice_namespace"
LABEL_NAME: Final = "inferenceservice"
TOKENS_WINDOW: Final = "10m"  # lengths of requests change slowly; a mean over fewer requests is noise

_BY: Final = f"sum by ({LABEL_NAMESPACE}, {LABEL_NAME})"
_SERVED: Final = f'{_BY} (increase(warmfront_gateway_requests_total{{outcome="served"}}[{TOKENS_WINDOW}]))'

Figures = dict[ServiceKey, float]


class Querying(Protocol):
    """The part of the Prometheus client that is needed here."""

    def query(self, promql: str, at: float | None = None) -> list[Sample]:
        """Instant query."""
        ...


def queries(window_seconds: int) -> dict[str, str]:
    """PromQL by figure."""
    return {
        "arrivals": f"{_BY} (rate(warmfront_gateway_arrivals_total[{window_seconds}s]))",
        "prompt": f"{_BY} (increase(warmfront_gateway_prompt_tokens_total[{TOKENS_WINDOW}])) / {_SERVED}",
        "output": f"{_BY} (increase(warmfront_gateway_output_tokens_total[{TOKENS_WINDOW}])) / {_SERVED}",
        "backlog": f"{_BY} (vllm:num_requests_waiting)",
    }


@dataclass(frozen=True, kw_only=True)
class DemandReadings:
    """Demand by service. `error` says why there is none at all."""

    by_service: Mapping[ServiceKey, DemandReading] = field(default_factory=dict)
    error: str = ""
    configured: bool = True

    def view(self, key: ServiceKey) -> DemandView:
        """Demand of one service; unknown where nothing was counted. Absent is not zero."""
        return DemandView(reading=self.by_service.get(key), error=self.error, configured=self.configured)


@dataclass(frozen=True, kw_only=True)
class DemandSource:
    """Reads demand from Prometheus, in threads. `client` None: no Prometheus is configured."""

    client: Querying | None
    window_seconds: int
    timeout_seconds: float

    async def read(self) -> DemandReadings:
        """All services' demand now. Never raises: a failure is in the result."""
        if self.client is None:
            return DemandReadings(configured=False)
        start = time.monotonic()
        try:
            figures = await self._ask(self.client)
        except DemandError as error:
            READING_ERRORS.labels("prometheus").inc()
            return DemandReadings(error=str(error))
        READING_SECONDS.labels("prometheus").observe(time.monotonic() - start)
        return DemandReadings(by_service=combine(figures))

    async def _ask(self, client: Querying) -> dict[str, Figures]:
        asked = queries(self.window_seconds)
        calls = (asyncio.to_thread(client.query, promql) for promql in asked.values())
        try:
            # The client's own timeouts end the threads; this one bounds the pass even where a name lookup hangs.
            answers = await asyncio.wait_for(asyncio.gather(*calls), 2 * self.timeout_seconds)
        except TimeoutError as error:
            raise DemandError(f"Prometheus did not answer within {2 * self.timeout_seconds:g} s") from error
        except PrometheusError as error:
            raise DemandError(str(error)) from error
        return {name: by_service(samples) for name, samples in zip(asked, answers, strict=True)}


def by_service(samples: list[Sample]) -> Figures:
    """Values by the two labels that every gateway puts on its series; others are somebody else's series."""
    return {
        ServiceKey(sample.labels[LABEL_NAMESPACE], sample.labels[LABEL_NAME]): sample.value
        for sample in samples
        if LABEL_NAMESPACE in sample.labels and LABEL_NAME in sample.labels
    }


def combine(figures: Mapping[str, Figures]) -> dict[ServiceKey, DemandReading]:
    """A reading for each service whose arrivals are counted; token means may be unknown, a missing backlog is none."""
    return {
        key: DemandReading(
            arrivals_per_second=arrivals,
            prompt_tokens=figures["prompt"].get(key),
            output_tokens=figures["output"].get(key),
            backlog_requests=figures["backlog"].get(key, 0.0),
        )
        for key, arrivals in figures["arrivals"].items()
    }
