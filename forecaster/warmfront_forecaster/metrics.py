"""The forecaster's own metrics, under one prefix. No label grows with the number of services."""

from collections import Counter as Tally
from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from warmfront_forecaster.domain.trust import State

FIT_BUCKETS = (0.5, 1, 2, 4, 8, 15, 30, 60, 120, 300)


class Metrics:
    """One registry per app: tests make many."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.fits = Counter("warmfront_forecaster_fits", "Evaluations that came back.", registry=self.registry)
        self.fit_failures = Counter(
            "warmfront_forecaster_fit_failures", "Evaluations that did not: raised, timed out or died.", registry=self.registry
        )
        self.fit_seconds = Histogram(
            "warmfront_forecaster_fit_seconds",
            "Time of an evaluation, waiting included.",
            registry=self.registry,
            buckets=FIT_BUCKETS,
        )
        self.refreshes = Counter("warmfront_forecaster_refreshes", "Histories read.", registry=self.registry)
        self.refresh_failures = Counter(
            "warmfront_forecaster_refresh_failures", "Histories that Prometheus did not give.", registry=self.registry
        )
        self._services = Gauge("warmfront_forecaster_services", "Services by trust state.", ["state"], registry=self.registry)
        self._oldest = Gauge(
            "warmfront_forecaster_data_age_seconds",
            "Age of the newest measurement, of the service where it is oldest.",
            registry=self.registry,
        )
        self.show([], [])

    def show(self, states: Iterable[State], ages_seconds: Iterable[float]) -> None:
        """Set the gauges."""
        count = Tally(states)
        for state in State:
            self._services.labels(state=state.value).set(count[state])
        self._oldest.set(max(ages_seconds, default=0.0))
