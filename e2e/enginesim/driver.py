"""Runs the token engine in real time: a step, a sleep as long as the step takes, delivery of its tokens."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from e2e.enginesim.errors import QueueFullError
from e2e.enginesim.metrics import EngineMetrics, SequenceTimes
from warmfront_forecaster.capacity.token_engine import Step, TokenEngine, Work

# A process that was held up by more than this does not hurry to make it up: the burst would look like no real engine.
MOST_LAG_SECONDS: Final = 0.5


@dataclass(frozen=True, kw_only=True)
class Sequence:
    """One sequence of a request: what the engine computes, and how it will end."""

    work: Work
    max_tokens: int
    finish_reason: str


class Delivery:
    """Tokens of one request on their way to its handler. Those that gather while the handler is busy come together."""

    def __init__(self) -> None:
        self._ready: dict[int, int] = {}
        self._changed = asyncio.Event()

    def push(self, choice: int) -> None:
        """One more token of a choice is out."""
        self._ready[choice] = self._ready.get(choice, 0) + 1
        self._changed.set()

    async def batches(self) -> AsyncIterator[dict[int, int]]:
        """Numbers of new tokens by choice; never ends by itself."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            ready, self._ready = self._ready, {}
            yield ready


@dataclass(slots=True, kw_only=True)
class _InFlight:
    sequence: Sequence
    choice: int
    delivery: Delivery
    times: SequenceTimes


@dataclass(slots=True)
class _Due:
    """A step whose end is in the future."""

    step: Step
    ends_at: float
    outputs: list[_InFlight] = field(default_factory=list)


class EngineDriver:
    """One engine in real time. `clock` and `sleep` are those of the event loop, or a test's."""

    def __init__(
        self,
        *,
        engine: TokenEngine,
        metrics: EngineMetrics,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        tick_seconds: float = 0.0,
        max_queued: int | None = None,
    ) -> None:
        self._engine = engine
        self._metrics = metrics
        self._clock = clock
        self._sleep = sleep
        self._tick_seconds = tick_seconds
        self._max_queued = max_queued
        self._in_flight: dict[str, _InFlight] = {}
        self._woken = asyncio.Event()

    def submit(self, sequences: list[Sequence], *, choices: int) -> Delivery:
        """Queue the sequences of one request; their order is the order of the delivery's choices.

        Raises:
            QueueFullError: More unfinished sequences than the engine takes.
        """
        if self._max_queued is not None and len(self._in_flight) + len(sequences) > self._max_queued:
            self._metrics.rejected()
            raise QueueFullError
        delivery, now = Delivery(), self._clock()
        for choice, sequence in enumerate(sequences):
            times = SequenceTimes(prompt_tokens=sequence.work.prompt_tokens, max_tokens=sequence.max_tokens, arrived=now)
            self._engine.add(sequence.work)
            self._in_flight[sequence.work.request_id] = _InFlight(
                sequence=sequence, choice=choice, delivery=delivery, times=times
            )
        self._metrics.submitted(choices=choices, max_tokens=[sequence.max_tokens for sequence in sequences])
        self._woken.set()
        return delivery

    def abort(self, request_ids: list[str]) -> None:
        """Drop what of these is unfinished, its KV with it. vLLM counts a request that its client gave up as nothing."""
        for request_id in request_ids:
            if self._in_flight.pop(request_id, None) is not None:
                self._engine.abort(request_id)

    async def run(self) -> None:
        """Step for ever."""
        ends_at = self._clock()
        while True:
            if not self._engine.has_work:
                self._metrics.idle()
                self._woken.clear()
                await self._woken.wait()
                ends_at = self._clock()
            due = self._steps_of_a_tick(ends_at)
            ends_at = due[-1].ends_at
            await self._sleep(max(0.0, ends_at - self._clock()))
            for one in due:
                self._deliver(one)

    def _steps_of_a_tick(self, begins_at: float) -> list[_Due]:
        """The next step, and those after it that end within the same tick."""
        now = self._clock()
        ends_at = begins_at if now - begins_at < MOST_LAG_SECONDS else now
        horizon = max(ends_at, now) + self._tick_seconds
        due: list[_Due] = []
        while self._engine.has_work and (not due or ends_at < horizon):
            due.append(self._step(ends_at))
            ends_at = due[-1].ends_at
        return due

    def _step(self, begins_at: float) -> _Due:
        step = self._engine.step()
        due = _Due(step, begins_at + step.duration_seconds)
        for request_id in step.admitted:
            self._in_flight[request_id].times.scheduled = begins_at
        for request_id in step.preempted:
            self._in_flight[request_id].times.preemptions += 1
        due.outputs = [self._in_flight[request_id] for request_id in step.produced]
        self._metrics.stepped(step)
        return due

    def _deliver(self, due: _Due) -> None:
        for flight in due.outputs:
            request_id = flight.sequence.work.request_id
            if self._in_flight.get(request_id) is not flight:
                continue  # aborted while the step ran
            self._token(flight.times, due.ends_at)
            flight.delivery.push(flight.choice)
            if flight.times.tokens == flight.sequence.work.output_tokens:
                del self._in_flight[request_id]
                self._metrics.finished(flight.times, flight.sequence.finish_reason, due.ends_at)

    def _token(self, times: SequenceTimes, at: float) -> None:
        if times.last_token is None:
            times.first_token = at
            self._metrics.first_token(times, at)
        else:
            self._metrics.next_token(at - times.last_token)
        times.last_token = at
        times.tokens += 1
