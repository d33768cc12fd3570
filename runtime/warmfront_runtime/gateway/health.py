"""What the engine's answers to health requests mean. Pure: the clock is an argument."""

from enum import StrEnum


class Probe(StrEnum):
    """What one health request met."""

    HEALTHY = "healthy"
    UNHEALTHY = "unhealthy"
    """It answered, with an error: vLLM says so when its engine core has died."""
    UNANSWERED = "unanswered"
    """It took the connection and said nothing in time."""
    UNREACHABLE = "unreachable"
    """It took no connection: not started yet, or restarting."""


class EngineWatch:
    """Remembers enough to tell an engine that loads from one that hangs.

    Killing an engine that loads would start the load over, for ever; so only one that has answered before, still takes
    connections and has not given a healthy answer for `hang_seconds` counts as hung.
    """

    def __init__(self, *, hang_seconds: float) -> None:
        self._hang_seconds = hang_seconds
        self._has_answered = False
        self._bad_since: float | None = None
        self.last: Probe | None = None

    def record(self, probe: Probe, now: float) -> None:
        """One more answer, at `now` seconds of a monotonic clock."""
        self.last = probe
        if probe is Probe.HEALTHY:
            self._has_answered, self._bad_since = True, None
        elif probe is Probe.UNREACHABLE:
            self._has_answered, self._bad_since = False, None
        elif self._bad_since is None:
            self._bad_since = now

    @property
    def healthy(self) -> bool:
        """Whether the last answer was good."""
        return self.last is Probe.HEALTHY

    def hung(self, now: float) -> bool:
        """Whether a restart is the only way left."""
        return self._has_answered and self._bad_since is not None and now - self._bad_since >= self._hang_seconds

    def lost(self, now: float) -> bool:
        """Whether requests would fail now. A busy engine that is late with one answer is not lost."""
        return self.last in {Probe.UNREACHABLE, Probe.UNHEALTHY} or self.hung(now)
