"""The token-level state machine of one engine: continuous batching, chunked prefill, paged KV with preemption.

It follows vLLM's V1 scheduler under its first-come-first-served policy (`vllm/v1/core/sched/scheduler.py`): running requests are
served first and in order, the last of them is preempted (its KV dropped, later recomputed) when blocks run out, and new ones
enter at the head of the queue only in steps without a preemption. There is no clock in it: a step returns how long it takes.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain

from warmfront_forecaster.capacity.step_model import StepModel


@dataclass(frozen=True, kw_only=True)
class EngineLimits:
    """What bounds an engine. KV capacity is `kv_blocks * block_tokens` tokens."""

    max_num_seqs: int
    max_num_batched_tokens: int
    kv_blocks: int
    block_tokens: int = 16

    def __post_init__(self) -> None:
        for name in ("max_num_seqs", "max_num_batched_tokens", "kv_blocks", "block_tokens"):
            if getattr(self, name) < 1:
                raise ValueError(f"engine limits: {name} must be at least 1, got {getattr(self, name)}")
        if self.max_num_batched_tokens < self.max_num_seqs:
            raise ValueError("engine limits: max_num_batched_tokens must be at least max_num_seqs, or a full batch cannot decode")

    def blocks(self, tokens: int) -> int:
        """KV blocks that hold `tokens` tokens."""
        return -(-tokens // self.block_tokens)


@dataclass(frozen=True, kw_only=True)
class Work:
    """One sequence to serve, both lengths at least 1. The output length is known beforehand; scheduling does not look at it."""

    request_id: str
    prompt_tokens: int
    output_tokens: int

    @property
    def peak_kv_tokens(self) -> int:
        """Most KV tokens it ever holds: the last output token is sampled, never written."""
        return self.prompt_tokens + self.output_tokens - 1


@dataclass(frozen=True, kw_only=True)
class Step:
    """What one step did.

    `running`, `waiting` and `kv_blocks_used` are of the time while it ran, before what finished in it was let go.
    `admitted` holds those scheduled for the first time, `preempted` those that lost their KV and will be recomputed.
    """

    duration_seconds: float
    batch: int
    prefill_tokens: int
    kv_tokens: int
    running: int
    waiting: int
    kv_blocks_used: int
    produced: dict[str, int]
    admitted: tuple[str, ...]
    preempted: tuple[str, ...]
    finished: tuple[str, ...]


@dataclass(slots=True, eq=False)
class _Sequence:
    """The state of one request. `computed` tokens are in KV; `known` = prompt and what was sampled so far."""

    work: Work
    known: int
    computed: int = 0
    sampled: int = 0
    blocks: int = 0
    was_admitted: bool = False

    @property
    def decoding(self) -> bool:
        """Whether only the token sampled last is missing from its KV."""
        return self.sampled > 0 and self.known - self.computed == 1

    @property
    def done(self) -> bool:
        """Whether its whole output has been sampled."""
        return self.sampled == self.work.output_tokens


@dataclass(slots=True)
class _Draft:
    """A step while it is being scheduled."""

    budget: int
    batch: int = 0
    prefill_tokens: int = 0
    kv_tokens: int = 0
    scheduled: list[_Sequence] = field(default_factory=list)
    admitted: list[str] = field(default_factory=list)
    preempted: list[str] = field(default_factory=list)


class TokenEngine:
    """One engine. `add` and `abort` at any time between steps; `step` while `has_work`."""

    def __init__(self, *, limits: EngineLimits, model: StepModel) -> None:
        self.limits = limits
        self.model = model
        self._waiting: deque[_Sequence] = deque()
        self._running: list[_Sequence] = []
        self._free_blocks = limits.kv_blocks
        self._by_id: dict[str, _Sequence] = {}

    @property
    def has_work(self) -> bool:
        """Whether a step would do anything."""
        return bool(self._by_id)

    @property
    def running(self) -> tuple[str, ...]:
        """The requests that hold a place in the batch, oldest first."""
        return tuple(sequence.work.request_id for sequence in self._running)

    @property
    def waiting(self) -> tuple[str, ...]:
        """The queue, the next one first."""
        return tuple(sequence.work.request_id for sequence in self._waiting)

    @property
    def kv_blocks_used(self) -> int:
        """Blocks held by running requests."""
        return self.limits.kv_blocks - self._free_blocks

    def add(self, work: Work) -> None:
        """Queue a request.

        Raises:
            ValueError: A length below 1, an id that is in the engine already, or more KV than the whole engine has.
        """
        if min(work.prompt_tokens, work.output_tokens) < 1:
            raise ValueError(f"request {work.request_id}: prompt and output need at least one token each")
        if work.request_id in self._by_id:
            raise ValueError(f"request {work.request_id} is in the engine already")
        if self.limits.blocks(work.peak_kv_tokens) > self.limits.kv_blocks:
            capacity = self.limits.kv_blocks * self.limits.block_tokens
            raise ValueError(f"request {work.request_id} needs {work.peak_kv_tokens} KV tokens, the engine holds {capacity}")
        sequence = _Sequence(work=work, known=work.prompt_tokens)
        self._by_id[work.request_id] = sequence
        self._waiting.append(sequence)

    def abort(self, request_id: str) -> bool:
        """Drop a request and free its KV. False when it is not in the engine (any more)."""
        sequence = self._by_id.pop(request_id, None)
        if sequence is None:
            return False
        if sequence in self._running:
            self._running.remove(sequence)
        else:
            self._waiting.remove(sequence)
        self._release(sequence)
        return True

    def step(self) -> Step:
        """Schedule one step and run it. An idle engine takes a step that does nothing but its base time."""
        draft = _Draft(budget=self.limits.max_num_batched_tokens)
        self._schedule_running(draft)
        if not draft.preempted:
            self._admit(draft)
        running, used = len(self._running), self.kv_blocks_used
        sampled = [sequence for sequence in draft.scheduled if self._sample(sequence)]
        finished = [sequence for sequence in sampled if sequence.done]
        self._let_go(finished)
        return Step(
            duration_seconds=self.model.seconds(
                batch=draft.batch, kv_tokens=draft.kv_tokens, prefill_tokens=draft.prefill_tokens
            ),
            batch=draft.batch,
            prefill_tokens=draft.prefill_tokens,
            kv_tokens=draft.kv_tokens,
            running=running,
            waiting=len(self._waiting),
            kv_blocks_used=used,
            produced={sequence.work.request_id: 1 for sequence in sampled},
            admitted=tuple(draft.admitted),
            preempted=tuple(draft.preempted),
            finished=tuple(sequence.work.request_id for sequence in finished),
        )

    def kv_tokens_by_request(self) -> Iterator[tuple[str, int]]:
        """KV tokens held by each request, running ones first."""
        return ((sequence.work.request_id, sequence.computed) for sequence in chain(self._running, self._waiting))

    def _schedule_running(self, draft: _Draft) -> None:
        index = 0
        while index < len(self._running) and draft.budget > 0:
            sequence = self._running[index]
            take = min(sequence.known - sequence.computed, draft.budget)
            if not self._make_room(sequence, take, draft):
                return
            self._compute(sequence, take, draft)
            index += 1

    def _admit(self, draft: _Draft) -> None:
        while self._waiting and draft.budget > 0 and len(self._running) < self.limits.max_num_seqs:
            sequence = self._waiting[0]
            # The whole sequence must fit, not only its first chunk (vLLM: scheduler_reserve_full_isl), else half-prefilled
            # prompts would preempt each other. The head waits for room; nobody overtakes it.
            if self.limits.blocks(sequence.known) > self._free_blocks - self._blocks_promised():
                return
            self._running.append(self._waiting.popleft())
            self._compute(sequence, min(sequence.known, draft.budget), draft)
            if not sequence.was_admitted:
                sequence.was_admitted = True
                draft.admitted.append(sequence.work.request_id)

    def _blocks_promised(self) -> int:
        """Blocks that half-prefilled running requests will still take: only the last one can be half-prefilled, but ask all."""
        return sum(self.limits.blocks(sequence.known) - sequence.blocks for sequence in self._running if not sequence.decoding)

    def _make_room(self, sequence: _Sequence, take: int, draft: _Draft) -> bool:
        """Preempt from the end until `take` more tokens of it fit; False when it was itself the last."""
        while self.limits.blocks(sequence.computed + take) - sequence.blocks > self._free_blocks:
            victim = self._running.pop()
            self._release(victim)
            self._waiting.appendleft(victim)
            draft.preempted.append(victim.work.request_id)
            if victim is sequence:
                return False
        return True

    def _compute(self, sequence: _Sequence, take: int, draft: _Draft) -> None:
        if sequence.decoding:
            draft.batch += 1
        else:
            draft.prefill_tokens += take
        sequence.computed += take
        needed = self.limits.blocks(sequence.computed)
        self._free_blocks -= needed - sequence.blocks
        sequence.blocks = needed
        draft.budget -= take
        draft.kv_tokens += sequence.computed
        draft.scheduled.append(sequence)

    def _sample(self, sequence: _Sequence) -> bool:
        """Give it its next token when all known ones are computed; False in the middle of a chunked prefill."""
        if sequence.computed < sequence.known:
            return False
        sequence.known += 1
        sequence.sampled += 1
        return True

    def _let_go(self, finished: list[_Sequence]) -> None:
        if not finished:
            return
        for sequence in finished:
            self._release(sequence)
            del self._by_id[sequence.work.request_id]
        self._running = [sequence for sequence in self._running if not sequence.done]

    def _release(self, sequence: _Sequence) -> None:
        self._free_blocks += sequence.blocks
        sequence.blocks = sequence.computed = 0
