"""What the gateway's parts share about their pod: its state, its slots, what runs, and the gauges that show them."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from warmfront_runtime.admission.limits import Bounds, Slots
from warmfront_runtime.errors import ShedError
from warmfront_runtime.gateway.health import EngineWatch
from warmfront_runtime.gateway.lifecycle import Lifecycle, State
from warmfront_runtime.gateway.running import Running
from warmfront_runtime.metrics import PHASES, GatewayMetrics

_WHY_NOT = {
    State.STARTING: "the engine is starting",
    State.WARMING: "the engine is warming up",
    State.DRAINING: "this pod is stopping",
    State.STOPPED: "this pod is stopping",
}


class Pod:
    """The one mutable value of the process. `clock` gives monotonic seconds."""

    def __init__(
        self,
        *,
        model_name: str,
        bounds: Bounds,
        metrics: GatewayMetrics,
        clock: Callable[[], float],
        engine_hang_seconds: float,
        accept_after_sigterm_seconds: float,
    ) -> None:
        self.bounds = bounds
        self.metrics = metrics
        self.clock = clock
        self.slots = Slots(bounds)
        self.idle = asyncio.Event()
        self.idle.set()
        self.running = Running()
        self.watch = EngineWatch(hang_seconds=engine_hang_seconds)
        self.lifecycle = Lifecycle.start(clock())
        self.served_models = frozenset({model_name})
        self._accept_after_sigterm_seconds = accept_after_sigterm_seconds

    def move(self, lifecycle: Lifecycle) -> None:
        """Take the next state, and show it."""
        self.lifecycle = lifecycle
        self.metrics.warm.set(lifecycle.warm)
        self.metrics.draining.set(lifecycle.draining)
        phases = lifecycle.phase_seconds
        for phase in PHASES:
            self.metrics.cold_start[phase].set(phases.get(phase, 0.0))

    def check_accepts(self) -> None:
        """Turn a request away while the pod does not serve.

        Raises:
            ShedError: with the reason.
        """
        if not self.lifecycle.accepts(self.clock(), self._accept_after_sigterm_seconds):
            why = _WHY_NOT.get(self.lifecycle.state, "this pod does not serve now")
            raise ShedError(f"{why}: try again after the time in Retry-After")

    @contextmanager
    def slot(self) -> Iterator[None]:
        """One place inside, for as long as the block takes.

        Raises:
            ShedError: the pod does not serve, or is full.
        """
        self.check_accepts()
        self.slots.take()
        self._show_slots()
        try:
            yield
        finally:
            self.slots.give_back()
            self._show_slots()

    def _show_slots(self) -> None:
        self.metrics.in_flight.set(self.slots.used)
        (self.idle.clear if self.slots.used else self.idle.set)()
