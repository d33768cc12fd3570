"""A past that a Prometheus can be given: a recorded trace, moved in time, as the counters of one service. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass

from e2e.history.openmetrics import MeanTokens, Service, Window, render
from e2e.history.trace import RateTrace


@dataclass(frozen=True, kw_only=True)
class Past:
    """Which trace, which part of it and when it was, whose, and how long its requests were."""

    trace: RateTrace
    window: Window
    service: Service
    tokens: MeanTokens

    def lines(self) -> Iterator[str]:
        """The lines of the OpenMetrics text."""
        return render(self.trace, self.window, self.service, self.tokens)
