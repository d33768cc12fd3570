"""The token-level state machine of `TokenEngine`, compiled: a fleet of engines, step by step.

Same rules, request by request (a property test holds it), at constant cost per step. Sequences that decode advance in lockstep,
so nothing is kept per token: `kv` and `phases` (how many sequences stand at each place of a block) say what a step attends to
and which blocks it takes, `rings` says who ends at which step. Only a step that samples a first or last token touches a sequence.

Two facts about the engine make that exact. The budget of a step is at least the batch, so every decoding sequence advances in
every step, and at most the newest one is half prefilled. And preempting from the end until the whole step fits removes the same
sequences as doing so sequence by sequence. `fleet.py` is what others use.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

from warmfront_forecaster.capacity.step_model import step_seconds

Rows = Any  # an array of one of the row types below: numba knows their fields, mypy does not
Row = Any
_Function = TypeVar("_Function", bound=Callable[..., Any])

NOBODY: Final = -1
RANDOM: Final = 0
LEAST_IN_FLIGHT: Final = 1


def compiled(function: _Function) -> _Function:
    """Compile on the first call; nothing is written to disk, since a container's root is read-only."""
    return cast("_Function", njit(cache=False)(function))


def inlined(function: _Function) -> _Function:
    """The same, compiled into its caller: what every step calls."""
    return cast("_Function", njit(cache=False, inline="always")(function))


_step_seconds = compiled(step_seconds)


class Rules(NamedTuple):
    """What bounds every engine, how long its steps take, and how requests are spread. `most_waiting`: beyond it, shed."""

    max_num_seqs: int
    max_num_batched_tokens: int
    block_tokens: int
    most_waiting: int
    routing: int
    base: float
    per_sequence: float
    per_kv_token: float
    per_prefill_token: float


REQUEST: Final = np.dtype(
    [
        ("arrival", np.float64),  # seconds, as the next two
        ("first", np.float64),  # NaN until it is known
        ("last", np.float64),
        ("draw", np.float64),  # uniform in [0, 1): its own luck in routing
        ("finish", np.int64),  # the step that ends it, while it decodes
        ("prompt", np.int32),
        ("output", np.int32),
        ("sampled", np.int32),  # output tokens so far, while it does not decode
        ("replica", np.int32),
        ("preemptions", np.int32),
        ("older", np.int32),  # links in the batch
        ("newer", np.int32),  # the same, or the next in the queue
        ("ring_before", np.int32),  # links among those that end at the same step
        ("ring_after", np.int32),
    ],
    align=True,
)

ENGINE: Final = np.dtype(
    [
        ("opens", np.float64),  # takes requests from here, seconds
        ("closes", np.float64),  # until here
        ("clock", np.float64),  # end of the last step, or arrival at an idle engine
        ("step", np.int64),  # steps run
        ("kv", np.int64),  # KV tokens of decoding sequences
        ("free_blocks", np.int64),
        ("running", np.int64),
        ("decoding", np.int64),
        ("waiting", np.int64),
        ("ended", np.int64),  # what the last step finished
        ("partial", np.int64),  # the half-prefilled sequence
        ("partial_done", np.int64),  # its tokens in KV
        ("head", np.int64),  # ends of the queue
        ("tail", np.int64),
        ("newest", np.int64),  # end of the batch
        ("completing", np.int64),  # sequences whose prefill the step under way completes
    ]
)


class State(NamedTuple):
    """A fleet at work: `REQUEST` rows in order of arrival, `ENGINE` rows, and per engine three rows of integers.

    `phases[k, i]`: decoding sequences that stand i tokens into a block, less the step. `rings[k, step % width]`: who ends at that
    step. `ready[k]`: those `completing`.
    """

    requests: Rows
    engines: Rows
    phases: NDArray[np.int64]
    rings: NDArray[np.int64]
    ready: NDArray[np.int64]


@compiled
def _blocks(tokens: int, block_tokens: int) -> int:
    return -(-tokens // block_tokens)


@compiled
def _queue_last(engine: Row, requests: Rows, j: int) -> None:
    requests[j].newer = NOBODY
    if engine.waiting == 0:
        engine.head = j
    else:
        requests[engine.tail].newer = j
    engine.tail = j
    engine.waiting += 1


@compiled
def _queue_first(engine: Row, requests: Rows, j: int) -> None:
    if engine.waiting == 0:
        engine.tail = j
    requests[j].newer = engine.head
    engine.head = j
    engine.waiting += 1


@compiled
def _take_from_queue(engine: Row, requests: Rows) -> int:
    j = engine.head
    engine.head = requests[j].newer
    engine.waiting -= 1
    return int(j)


@compiled
def _join_batch(engine: Row, requests: Rows, j: int) -> None:
    requests[j].older = engine.newest
    requests[j].newer = NOBODY
    if engine.newest != NOBODY:
        requests[engine.newest].newer = j
    engine.newest = j
    engine.running += 1


@compiled
def _leave_batch(engine: Row, requests: Rows, j: int) -> None:
    older, newer = requests[j].older, requests[j].newer
    if older != NOBODY:
        requests[older].newer = newer
    if newer != NOBODY:
        requests[newer].older = older
    else:
        engine.newest = older
    engine.running -= 1


@compiled
def _computed(engine: Row, request: Row) -> int:
    """KV tokens of a decoding sequence between steps."""
    return int(request.prompt + request.output - 1 - (request.finish - engine.step))


@compiled
def _phase(rules: Rules, request: Row) -> int:
    """Where in a block a decoding sequence stands, less the step: constant while it decodes."""
    return int((request.prompt + request.output - 1 - request.finish) % rules.block_tokens)


@compiled
def _start_decoding(rules: Rules, state: State, k: int, j: int) -> None:
    engine, request, requests = state.engines[k], state.requests[j], state.requests
    request.finish = engine.step + request.output - request.sampled
    slot = request.finish % state.rings.shape[1]
    after = state.rings[k, slot]
    request.ring_before = NOBODY
    request.ring_after = after
    if after != NOBODY:
        requests[after].ring_before = j
    state.rings[k, slot] = j
    state.phases[k, _phase(rules, request)] += 1
    engine.decoding += 1
    engine.kv += request.prompt + request.sampled - 1


@compiled
def _stop_decoding(rules: Rules, state: State, k: int, j: int) -> None:
    """Take it out of the lockstep and give its blocks back."""
    engine, request, requests = state.engines[k], state.requests[j], state.requests
    before, after = request.ring_before, request.ring_after
    if before != NOBODY:
        requests[before].ring_after = after
    else:
        state.rings[k, request.finish % state.rings.shape[1]] = after
    if after != NOBODY:
        requests[after].ring_before = before
    computed = _computed(engine, request)
    state.phases[k, _phase(rules, request)] -= 1
    engine.decoding -= 1
    engine.kv -= computed
    engine.free_blocks += _blocks(computed, rules.block_tokens)


@compiled
def _partial_take(rules: Rules, engine: Row, requests: Rows) -> int:
    """Prompt tokens that the half-prefilled sequence computes next."""
    request = requests[engine.partial]
    left = request.prompt + request.sampled - engine.partial_done
    return int(min(left, rules.max_num_batched_tokens - engine.decoding))


@inlined
def _blocks_of_step(rules: Rules, state: State, k: int) -> int:
    """New blocks that the running sequences need for their next step."""
    engine = state.engines[k]
    needed = state.phases[k, -engine.step % rules.block_tokens]
    if engine.partial != NOBODY:
        done = engine.partial_done
        take = _partial_take(rules, engine, state.requests)
        needed += _blocks(done + take, rules.block_tokens) - _blocks(done, rules.block_tokens)
    return int(needed)


@compiled
def _preempt_newest(rules: Rules, state: State, k: int) -> None:
    engine = state.engines[k]
    j = engine.newest
    request = state.requests[j]
    if j == engine.partial:
        engine.free_blocks += _blocks(engine.partial_done, rules.block_tokens)
        engine.partial = NOBODY
    else:
        request.sampled = request.output - (request.finish - engine.step)
        _stop_decoding(rules, state, k, j)
    _leave_batch(engine, state.requests, j)
    _queue_first(engine, state.requests, j)
    request.preemptions += 1


@inlined
def _make_room(rules: Rules, state: State, k: int) -> bool:
    """Take the blocks of the next step, preempting until they are there; whether any was preempted."""
    engine, preempted = state.engines[k], False
    needed = _blocks_of_step(rules, state, k)
    while needed > engine.free_blocks:
        _preempt_newest(rules, state, k)
        preempted = True
        needed = _blocks_of_step(rules, state, k)
    engine.free_blocks -= needed
    return preempted


@compiled
def _completes(state: State, k: int, j: int) -> None:
    engine = state.engines[k]
    state.ready[k, engine.completing] = j
    engine.completing += 1


@inlined
def _continue_partial(rules: Rules, state: State, k: int) -> tuple[int, int, int]:
    """Schedule the next chunk of the half-prefilled sequence: (decodes, prefill tokens, KV tokens attended to)."""
    engine = state.engines[k]
    j = engine.partial
    if j == NOBODY:
        return 0, 0, 0
    request, take = state.requests[j], _partial_take(rules, engine, state.requests)
    left = request.prompt + request.sampled - engine.partial_done
    engine.partial_done += take
    if take == left:
        _completes(state, k, j)
        engine.partial = NOBODY
    if left == 1 and request.sampled > 0:  # the engine cannot tell the last token of a recomputation from a decode
        return 1, 0, engine.partial_done
    return 0, take, engine.partial_done


@compiled
def _admit(rules: Rules, state: State, k: int, budget: int) -> int:
    """Take from the queue what fits whole into memory; prompt tokens scheduled (all of them are attended to)."""
    engine, requests, left = state.engines[k], state.requests, budget
    while left > 0 and engine.waiting > 0 and engine.running < rules.max_num_seqs:
        head = requests[engine.head]
        known = head.prompt + head.sampled
        if _blocks(known, rules.block_tokens) > engine.free_blocks:
            break
        j = _take_from_queue(engine, requests)
        _join_batch(engine, requests, j)
        take = min(known, left)
        engine.free_blocks -= _blocks(take, rules.block_tokens)
        left -= take
        if take < known:
            engine.partial = j
            engine.partial_done = take
        else:
            _completes(state, k, j)
    return budget - left


@compiled
def _sample_first(rules: Rules, state: State, k: int, j: int) -> None:
    """At the end of a step that completed its prefill."""
    engine, request = state.engines[k], state.requests[j]
    request.sampled += 1
    if request.sampled == 1:
        request.first = engine.clock
    if request.sampled < request.output:
        _start_decoding(rules, state, k, j)
        return
    request.last = engine.clock
    engine.free_blocks += _blocks(request.prompt + request.sampled - 1, rules.block_tokens)
    _leave_batch(engine, state.requests, j)
    engine.ended += 1


@inlined
def _end_those_due(rules: Rules, state: State, k: int) -> None:
    engine = state.engines[k]
    slot = engine.step % state.rings.shape[1]
    while state.rings[k, slot] != NOBODY:
        j = state.rings[k, slot]
        state.requests[j].last = engine.clock
        _stop_decoding(rules, state, k, j)
        _leave_batch(engine, state.requests, j)
        engine.ended += 1


@inlined
def _run_step(rules: Rules, state: State, k: int) -> None:
    engine = state.engines[k]
    preempted = _make_room(rules, state, k)
    advancing = engine.decoding
    engine.completing = 0
    decodes, prefill, kv = _continue_partial(rules, state, k)
    if not preempted:
        admitted = _admit(rules, state, k, rules.max_num_batched_tokens - advancing - decodes - prefill)
        prefill, kv = prefill + admitted, kv + admitted
    engine.kv += advancing
    engine.clock += _step_seconds(
        rules.base,
        rules.per_sequence,
        rules.per_kv_token,
        rules.per_prefill_token,
        advancing + decodes,
        engine.kv + kv,
        prefill,
    )
    engine.step += 1
    engine.ended = 0
    _end_those_due(rules, state, k)
    for place in range(engine.completing):
        _sample_first(rules, state, k, state.ready[k, place])


@compiled
def _decode_only(rules: Rules, state: State, k: int, until: float) -> None:
    """Run the steps in which nobody is prefilled, ends or runs out of room: as `_run_step` would, without looking at it."""
    engine, width = state.engines[k], state.rings.shape[1]
    batch, clock, step, kv, free = engine.decoding, engine.clock, engine.step, engine.kv, engine.free_blocks
    ending, phase = (step + 1) % width, -step % rules.block_tokens
    while clock < until and state.rings[k, ending] == NOBODY and state.phases[k, phase] <= free:
        free -= state.phases[k, phase]
        kv += batch
        clock += _step_seconds(rules.base, rules.per_sequence, rules.per_kv_token, rules.per_prefill_token, batch, kv, 0)
        step += 1
        ending = ending + 1 if ending + 1 < width else 0
        phase = phase - 1 if phase > 0 else rules.block_tokens - 1
        engine.ended = 0
    engine.clock = clock
    engine.step = step
    engine.kv = kv
    engine.free_blocks = free


@compiled
def _advance(rules: Rules, state: State, k: int, until: float) -> None:
    """Run all steps of a replica that begin before `until`."""
    engine = state.engines[k]
    while engine.running + engine.waiting > 0 and engine.clock < until:
        if engine.waiting == 0 and engine.partial == NOBODY:
            _decode_only(rules, state, k, until)
            if engine.clock >= until:
                return
        _run_step(rules, state, k)


@compiled
def _is_open(engine: Row, now: float) -> bool:
    return bool(engine.opens <= now < engine.closes)


@compiled
def _in_flight(engine: Row, now: float) -> int:
    """Unfinished requests as a router sees them: what the step under way will end has not ended yet."""
    under_way = engine.ended if engine.clock > now else 0
    return int(engine.running + engine.waiting + under_way)


@compiled
def _least_in_flight(engines: Rows, draw: float, now: float) -> int:
    """The open replica with the fewest; ties go to the first from a drawn place on."""
    replicas = len(engines)
    start, chosen, fewest = int(draw * replicas), NOBODY, 0
    for turn in range(replicas):
        k = (start + turn) % replicas
        if _is_open(engines[k], now):
            load = _in_flight(engines[k], now)
            if chosen == NOBODY or load < fewest:
                chosen, fewest = k, load
    return chosen


@compiled
def _any_open(engines: Rows, draw: float, now: float) -> int:
    open_replicas = 0
    for k in range(len(engines)):
        open_replicas += _is_open(engines[k], now)
    left = int(draw * open_replicas)
    for k in range(len(engines)):
        if _is_open(engines[k], now):
            if left == 0:
                return k
            left -= 1
    return NOBODY


@compiled
def _hand_to(rules: Rules, state: State, k: int, j: int) -> None:
    """Queue an arrival at a replica that has been advanced to it, unless it is shed."""
    engine, request = state.engines[k], state.requests[j]
    if engine.waiting >= rules.most_waiting:
        return
    if engine.running + engine.waiting == 0:
        engine.clock = max(engine.clock, request.arrival)
    request.replica = k
    _queue_last(engine, state.requests, j)


@compiled
def feed(rules: Rules, state: State, start: int, end: int) -> None:
    """Let the requests `start` to `end` (exclusive) arrive; replicas run as far as routing needs to know them."""
    engines, requests = state.engines, state.requests
    for j in range(start, end):
        now, draw = requests[j].arrival, requests[j].draw
        if rules.routing == LEAST_IN_FLIGHT:
            for k in range(len(engines)):
                _advance(rules, state, k, now)
            chosen = _least_in_flight(engines, draw, now)
        else:
            chosen = _any_open(engines, draw, now)
        if chosen != NOBODY:
            _advance(rules, state, chosen, now)
            _hand_to(rules, state, chosen, j)


@compiled
def run_until(rules: Rules, state: State, until: float) -> None:
    """Run every replica's steps that begin before `until` (infinity: until all is served)."""
    for k in range(len(state.engines)):
        _advance(rules, state, k, until)
