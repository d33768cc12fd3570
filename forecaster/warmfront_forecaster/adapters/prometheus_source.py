"""A service's history from Prometheus, by range queries over what its gateways count. Synchronous: run it in a thread."""

import math
from dataclasses import dataclass
from typing import Protocol

from warmfront_forecaster.adapters.prometheus_client import Sample, Series
from warmfront_forecaster.domain.calendar import DAY_SECONDS
from warmfront_forecaster.domain.demand import Traffic, blank, join
from warmfront_forecaster.domain.series import COARSE_STEP_SECONDS, FINE_DAYS, STEP_SECONDS, FloatArray, on_grid

SCRAPES_PER_RATE = 4  # rate() over fewer is wrong by up to half where one is late
SLACK_SECONDS = 3_600  # a history that begins within an hour of what was asked for is whole


@dataclass(frozen=True, kw_only=True, order=True)
class ServiceKey:
    """One service."""

    namespace: str
    name: str


@dataclass(frozen=True, kw_only=True)
class Holdings:
    """What Prometheus says about its own data.

    `spacing_seconds` between scrapes of the gateways (None: no gateway is scraped now; 60 stands for "60 or more").
    `retention_seconds`: None: it does not say. `holds_start`: whether it has any data as old as was asked for.
    """

    spacing_seconds: float | None = None
    retention_seconds: float | None = None
    holds_start: bool = True


class Asks(Protocol):
    """What is needed of a Prometheus client."""

    def query(self, promql: str, at: float | None = None) -> list[Sample]:
        """Instant query."""
        ...

    def query_range(self, promql: str, start: float, end: float, step_seconds: int) -> list[Series]:
        """Range query."""
        ...


@dataclass(frozen=True)
class PrometheusSource:
    """Reads histories. Raises PrometheusError where Prometheus does not answer."""

    client: Asks

    def holdings(self, service: ServiceKey, start: int) -> Holdings:
        """How densely the service is scraped, how much Prometheus keeps, and whether it reaches back to `start`."""
        retention = self._value("max(prometheus_tsdb_retention_limit_seconds)")
        return Holdings(
            spacing_seconds=self.spacing_seconds(service),
            retention_seconds=retention or None,  # 0: limited by size only
            holds_start=bool(self.client.query("count(up)", at=float(start + SLACK_SECONDS))),
        )

    def spacing_seconds(self, service: ServiceKey) -> float | None:
        """Seconds between scrapes, from the fullest minute of the last ten: a pod that has just come or gone has fewer."""
        counted = f"count_over_time({_arrivals(service)}[{STEP_SECONDS}s])"
        most = self._value(f"max(max_over_time({counted}[10m:{STEP_SECONDS}s]))")
        return STEP_SECONDS / most if most else None

    def traffic(self, service: ServiceKey, start: int, end: int, spacing_seconds: float | None = None) -> Traffic:
        """All from `start` to `end` (Unix seconds on the grid, both included): by the minute for FINE_DAYS, by ten before."""
        fine_start = max(start, _floor(end - FINE_DAYS * DAY_SECONDS))
        fine = self._traffic(service, fine_start, end, STEP_SECONDS, rate_window_seconds(spacing_seconds))
        if fine_start <= start:
            return fine
        coarse = self._traffic(service, start, fine_start, COARSE_STEP_SECONDS, COARSE_STEP_SECONDS)
        return join(coarse, fine, end - start)

    def _traffic(self, service: ServiceKey, start: int, end: int, step_seconds: int, window_seconds: int) -> Traffic:
        if end < start:
            return blank(start, end)
        arrivals = f"sum(rate({_arrivals(service)}[{window_seconds}s]))"
        return Traffic(
            start=start,
            arrivals=self._grid(arrivals, start, end, step_seconds),
            prompt_tokens=self._grid(_mean_tokens("prompt", service), start, end, COARSE_STEP_SECONDS),
            output_tokens=self._grid(_mean_tokens("output", service), start, end, COARSE_STEP_SECONDS),
        )

    def _grid(self, promql: str, start: int, end: int, step_seconds: int) -> FloatArray:
        """Means over `step_seconds` on the grid, asked for at multiples of the step: each question meets the same ones."""
        first = -(-start // step_seconds) * step_seconds
        last = -(-end // step_seconds) * step_seconds if step_seconds == STEP_SECONDS else _floor(end)
        series = self.client.query_range(promql, float(first), float(last), step_seconds)
        times = [time for one in series for time in one.times]
        values = [value for one in series for value in one.values]
        return on_grid(start, end, times, values, step_seconds)

    def _value(self, promql: str) -> float | None:
        return next((sample.value for sample in self.client.query(promql)), None)


def rate_window_seconds(spacing_seconds: float | None) -> int:
    """Over how long rates are taken: a minute, or four scrapes where those are further apart."""
    return max(STEP_SECONDS, math.ceil(SCRAPES_PER_RATE * (spacing_seconds or 0.0)))


def _floor(time: int) -> int:
    return time // COARSE_STEP_SECONDS * COARSE_STEP_SECONDS


def _escaped(text: str) -> str:
    """A text as it stands between quotes in PromQL: whoever asks must not be able to write a query of his own."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _selector(service: ServiceKey) -> str:
    return f'inferenceservice_namespace="{_escaped(service.namespace)}",inferenceservice="{_escaped(service.name)}"'


def _arrivals(service: ServiceKey) -> str:
    return f"warmfront_gateway_arrivals_total{{{_selector(service)}}}"


def _mean_tokens(kind: str, service: ServiceKey) -> str:
    """Tokens per served request; 0/0 where none was served, which the client drops."""
    where = _selector(service)
    tokens = f"sum(increase(warmfront_gateway_{kind}_tokens_total{{{where}}}[{COARSE_STEP_SECONDS}s]))"
    return f'{tokens} / sum(increase(warmfront_gateway_requests_total{{{where},outcome="served"}}[{COARSE_STEP_SECONDS}s]))'
