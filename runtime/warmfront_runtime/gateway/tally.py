"""The accounts of one request: counted once as an arrival, once by outcome, and timed on its way."""

from collections.abc import Callable

from warmfront_runtime.errors import Outcome
from warmfront_runtime.gateway.usage import Usage
from warmfront_runtime.metrics import GatewayMetrics

Clock = Callable[[], float]


class Tally:
    """One generation request, from its headers on. `clock` gives monotonic seconds.

    An arrival is counted when it is clear that the engine has not refused it: at its answer's beginning, or a moment after it
    was sent (the caller's timer calls `arrive`), whichever comes first. Else bad requests, which cost nothing to send, would
    start GPUs; and an arrival counted at its end would be a generation late.
    """

    def __init__(self, metrics: GatewayMetrics, clock: Clock) -> None:
        self._metrics = metrics
        self._clock = clock
        self._began = clock()
        self._last_content: float | None = None
        self._arrived = False
        self._closed = False
        self.read_whole = False
        """Whether the request has come in completely. One that has not can be no demand, whoever ended it."""

    def arrive(self) -> None:
        """This request is demand. Counted once."""
        if not self._arrived:
            self._arrived = True
            self._metrics.arrivals.inc()

    def content(self, events: int) -> None:
        """`events` content events came in one piece; their gap is shared among them."""
        if events == 0:
            return
        now = self._clock()
        if self._last_content is None:
            self._metrics.time_to_first_token.observe(now - self._began)
            events -= 1
        gap = 0.0 if self._last_content is None else (now - self._last_content) / events
        self._last_content = now
        for _ in range(events):
            self._metrics.inter_token_latency.observe(gap)

    def close(self, outcome: Outcome, usage: Usage | None = None) -> None:
        """The request ended. Only the first call counts; tokens and duration only where it was served."""
        if self._closed:
            return
        self._closed = True
        if outcome is not Outcome.REFUSED:
            self.arrive()
        self._metrics.requests[outcome].inc()
        if outcome is Outcome.SERVED:
            self._metrics.request_duration.observe(self._clock() - self._began)
            self._count(usage)

    def _count(self, usage: Usage | None) -> None:
        if usage is not None:
            self._metrics.prompt_tokens.inc(usage.prompt_tokens)
            self._metrics.output_tokens.inc(usage.output_tokens)
