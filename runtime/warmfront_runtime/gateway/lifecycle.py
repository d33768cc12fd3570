"""The states of a pod, from its start to its stop. Pure: every change takes the clock's seconds and gives a new value.

    starting -> warming -> ready -> draining -> stopped
                   |         ^
                   +-> ready-not-warm          (warm-up too slow, engine healthy)

An engine that is lost (it crashed, its container restarts) leads back to starting from every state before draining.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

from warmfront_runtime.errors import TransitionError


class State(StrEnum):
    """Where the pod is."""

    STARTING = "starting"
    WARMING = "warming"
    READY = "ready"
    READY_NOT_WARM = "ready-not-warm"
    DRAINING = "draining"
    STOPPED = "stopped"


SERVING = frozenset({State.READY, State.READY_NOT_WARM})


@dataclass(frozen=True, kw_only=True)
class Lifecycle:
    """One moment of it. All times are seconds of one monotonic clock.

    Attributes:
        since: when this state was entered.
        began: when this start of the engine began to be waited for.
        engine_up_at: when the engine first answered; `None`: not yet.
        warm_at: when the warm-up was through; `None`: not yet.
        was_serving: whether requests were served when draining began.
    """

    state: State
    since: float
    began: float
    engine_up_at: float | None = None
    warm_at: float | None = None
    was_serving: bool = False

    @classmethod
    def start(cls, now: float) -> "Lifecycle":
        """The pod as it begins: nothing is known of the engine."""
        return cls(state=State.STARTING, since=now, began=now)

    @property
    def ready(self) -> bool:
        """Whether new clients should be sent here."""
        return self.state in SERVING

    @property
    def warm(self) -> bool:
        """Whether the warm-up's generations ran on this engine."""
        return self.warm_at is not None

    @property
    def draining(self) -> bool:
        """Whether the pod is on its way out."""
        return self.state in {State.DRAINING, State.STOPPED}

    @property
    def phase_seconds(self) -> dict[str, float]:
        """Seconds of each phase of the start that has ended: `engine`, `warmup`."""
        phases = {}
        if self.engine_up_at is not None:
            phases["engine"] = self.engine_up_at - self.began
            if self.warm_at is not None:
                phases["warmup"] = self.warm_at - self.engine_up_at
        return phases

    def accepts(self, now: float, accept_after_sigterm_seconds: float) -> bool:
        """Whether a new request is served: while ready, and a little longer, until the endpoints know better."""
        if self.state is State.DRAINING:
            return self.was_serving and now - self.since < accept_after_sigterm_seconds
        return self.ready

    def overdue(self, now: float, timeout_seconds: float) -> bool:
        """Whether the start takes longer than it may."""
        return not self.ready and not self.draining and now - self.began >= timeout_seconds

    def engine_up(self, now: float) -> "Lifecycle":
        """The engine answers."""
        return self._to(State.WARMING, now, allowed={State.STARTING}, engine_up_at=now)

    def warmed(self, now: float) -> "Lifecycle":
        """The warm-up is through, perhaps after its time."""
        return self._to(State.READY, now, allowed={State.WARMING, State.READY_NOT_WARM}, warm_at=now)

    def serve_cold(self, now: float) -> "Lifecycle":
        """The warm-up takes too long, and the engine is healthy."""
        return self._to(State.READY_NOT_WARM, now, allowed={State.WARMING})

    def engine_lost(self, now: float) -> "Lifecycle":
        """The engine is gone; the next one has to load and warm again."""
        return self if self.draining or self.state is State.STARTING else Lifecycle.start(now)

    def drain(self, now: float) -> "Lifecycle":
        """SIGTERM. A second one changes nothing here."""
        return self if self.draining else replace(self, state=State.DRAINING, since=now, was_serving=self.ready)

    def stop(self, now: float) -> "Lifecycle":
        """Everything has ended."""
        return self._to(State.STOPPED, now, allowed={State.DRAINING})

    def _to(
        self,
        state: State,
        now: float,
        *,
        allowed: set[State],
        engine_up_at: float | None = None,
        warm_at: float | None = None,
    ) -> "Lifecycle":
        if self.state not in allowed:
            raise TransitionError(f"{self.state} -> {state} is no change that the lifecycle knows")
        return replace(
            self,
            state=state,
            since=now,
            engine_up_at=self.engine_up_at if engine_up_at is None else engine_up_at,
            warm_at=self.warm_at if warm_at is None else warm_at,
        )
