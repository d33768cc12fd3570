"""The compiled fleet does, request by request, what `TokenEngine` does; and routes as it says."""

import math
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warmfront_forecaster.capacity.fleet import Fleet, Routing
from warmfront_forecaster.capacity.step_model import StepModel
from warmfront_forecaster.capacity.token_engine import EngineLimits, TokenEngine, Work
from warmfront_forecaster.capacity.workload import Lengths, Workload

MODEL = StepModel(
    base_seconds=0.02, per_sequence_seconds=0.001, per_kv_token_seconds=0.000_002, per_prefill_token_seconds=0.000_1
)


def limits(**changes: int) -> EngineLimits:
    values = {"max_num_seqs": 8, "max_num_batched_tokens": 64, "kv_blocks": 256, "block_tokens": 4, **changes}
    return EngineLimits(**values)


def workload(requests: list[tuple[float, int, int]], *, draws: list[float] | None = None) -> Workload:
    """Requests as (seconds since the one before, prompt, output)."""
    gaps, prompts, outputs = (np.array(column) for column in zip(*requests, strict=True))
    return Workload(
        arrival_seconds=np.cumsum(gaps.astype(float)),
        lengths=Lengths(prompt_tokens=prompts, output_tokens=outputs),
        draws=np.zeros(len(requests)) if draws is None else np.array(draws),
    )


def fleet(work: Workload, *, replicas: int = 1, routing: Routing = Routing.RANDOM, **changes: int) -> Fleet:
    return Fleet(limits=limits(**changes), model=MODEL, workload=work, replicas=replicas, routing=routing)


def serve(one: Fleet) -> Fleet:
    one.serve(1_000_000)
    one.run_until(math.inf)
    return one


@dataclass
class Reference:
    """What `TokenEngine` does with the requests of one replica: by request, seconds of first and last token, preemptions."""

    first: dict[int, float] = field(default_factory=dict)
    last: dict[int, float] = field(default_factory=dict)
    preemptions: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, work: Workload, chosen: list[int], bounds: EngineLimits) -> "Reference":
        engine, self, queue, now = TokenEngine(limits=bounds, model=MODEL), cls(), list(chosen), 0.0
        self.preemptions = dict.fromkeys(chosen, 0)
        while queue or engine.has_work:
            if not engine.has_work:
                now = max(now, float(work.arrival_seconds[queue[0]]))
            while queue and work.arrival_seconds[queue[0]] <= now:
                j = queue.pop(0)
                prompt, output = int(work.lengths.prompt_tokens[j]), int(work.lengths.output_tokens[j])
                engine.add(Work(request_id=str(j), prompt_tokens=prompt, output_tokens=output))
            step = engine.step()
            now += step.duration_seconds
            for name in step.preempted:
                self.preemptions[int(name)] += 1
            for name in step.produced:
                self.first.setdefault(int(name), now)
            self.last.update((int(name), now) for name in step.finished)
        return self


requests = st.tuples(st.floats(0, 0.2).map(lambda gap: gap if gap > 0.02 else 0.0), st.integers(1, 120), st.integers(1, 60))
streams = st.lists(requests, min_size=1, max_size=40)
engines = st.fixed_dictionaries(
    {
        "max_num_seqs": st.integers(1, 12),
        "max_num_batched_tokens": st.integers(12, 80),
        "kv_blocks": st.integers(45, 120),  # the longest request needs 45 blocks of 4
        "block_tokens": st.sampled_from([4, 7, 16]),
    }
)


@settings(max_examples=150, deadline=None)
@given(stream=streams, bounds=engines, replicas=st.integers(1, 3), routing=st.sampled_from(Routing), data=st.data())
def test_every_request_fares_as_in_the_token_engine(
    stream: list[tuple[float, int, int]], bounds: dict[str, int], replicas: int, routing: Routing, data: st.DataObject
) -> None:
    draws = data.draw(st.lists(st.floats(0, 1, exclude_max=True), min_size=len(stream), max_size=len(stream)))
    work = workload(stream, draws=draws)
    one = serve(fleet(work, replicas=replicas, routing=routing, **bounds))
    assert set(one.replica) <= set(range(replicas))
    for k in set(one.replica):
        chosen = [int(j) for j in np.flatnonzero(one.replica == k)]
        expected = Reference.of(work, chosen, limits(**bounds))
        for j in chosen:
            # The very same numbers: the same function on the same integers, in the same order.
            assert one.first_token_seconds[j] == expected.first[j]
            assert one.last_token_seconds[j] == expected.last[j]
            assert one.preemptions[j] == expected.preemptions[j]


def test_the_comparison_reaches_preemption_and_its_odd_last_token() -> None:
    """Some stream must make the engine recompute, or the test above would show nothing about it."""
    work = workload([(0.0, 40, 60)] * 6)
    bounds = {"kv_blocks": 60, "max_num_batched_tokens": 13}
    one = serve(fleet(work, **bounds))
    expected = Reference.of(work, list(range(6)), limits(**bounds))
    assert sum(expected.preemptions.values()) == 5
    assert list(one.preemptions) == [expected.preemptions[j] for j in range(6)]


@settings(max_examples=40, deadline=None)
@given(stream=streams, data=st.data())
def test_least_in_flight_picks_a_replica_with_the_fewest_unfinished_requests(
    stream: list[tuple[float, int, int]], data: st.DataObject
) -> None:
    draws = data.draw(st.lists(st.floats(0, 1, exclude_max=True), min_size=len(stream), max_size=len(stream)))
    work = workload(stream, draws=draws)
    one = serve(fleet(work, replicas=4, routing=Routing.LEAST_IN_FLIGHT))
    for j, now in enumerate(work.arrival_seconds):
        unfinished = one.replica[:j][one.last_token_seconds[:j] > now]
        loads = np.bincount(unfinished, minlength=4)
        assert loads[one.replica[j]] == loads.min()


@settings(max_examples=20, deadline=None)
@given(stream=streams, pieces=st.lists(st.integers(1, 10), max_size=8), routing=st.sampled_from(Routing))
def test_a_stream_fed_in_pieces_fares_the_same(stream: list[tuple[float, int, int]], pieces: list[int], routing: Routing) -> None:
    work = workload(stream)
    whole, parts = (fleet(work, replicas=2, routing=routing, kv_blocks=48) for _ in range(2))
    for piece in pieces:
        parts.serve(piece)
    serve(parts)
    serve(whole)
    assert np.array_equal(parts.last_token_seconds, whole.last_token_seconds)
    assert parts.arrived == whole.arrived == len(stream)


def test_random_routing_goes_by_the_request_s_own_draw() -> None:
    one = serve(fleet(workload([(1.0, 4, 4)] * 4, draws=[0.0, 0.24, 0.5, 0.99]), replicas=4))
    assert list(one.replica) == [0, 0, 2, 3]


@pytest.mark.parametrize("routing", Routing)
def test_a_replica_takes_requests_only_while_it_is_open(routing: Routing) -> None:
    one = fleet(workload([(1.0, 4, 200)] * 6), replicas=2, routing=routing)
    one.opens_seconds[1], one.closes_seconds[0] = 3.0, 4.0
    serve(one)
    assert list(one.replica[:2]) == [0, 0]
    assert list(one.replica[3:]) == [1, 1, 1]
    assert np.isfinite(one.last_token_seconds).all()  # what a closed replica has is finished


def test_requests_that_find_nobody_open_are_shed() -> None:
    one = fleet(workload([(1.0, 4, 4)] * 3))
    one.closes_seconds[0] = 2.0
    serve(one)
    assert list(one.replica) == [0, -1, -1]
    assert np.isnan(one.first_token_seconds[1:]).all()


def test_requests_that_find_a_full_queue_are_shed() -> None:
    work = workload([(0.001, 4, 50)] * 6)
    one = Fleet(limits=limits(max_num_seqs=2), model=MODEL, workload=work, replicas=1, routing=Routing.RANDOM, most_waiting=2)
    serve(one)
    # The first runs at once; of the others two wait until its step ends, so the rest find the queue full.
    assert list(one.replica) == [0, 0, 0, -1, -1, -1]


def test_time_stops_where_it_is_told() -> None:
    one = fleet(workload([(0.0, 4, 10)]))
    one.serve(1)
    one.run_until(0.05)
    assert np.isfinite(one.first_token_seconds[0])
    assert np.isnan(one.last_token_seconds[0])


def test_work_that_can_never_be_done_is_refused() -> None:
    with pytest.raises(ValueError, match="needs 1099 KV tokens, the engine holds 1024"):
        fleet(workload([(0.0, 1000, 100)]))
    with pytest.raises(ValueError, match="at least one replica"):
        fleet(workload([(0.0, 1, 1)]), replicas=0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"arrival_seconds": np.array([2.0, 1.0])}, "ascending"),
        ({"arrival_seconds": np.array([1.0, np.nan])}, "finite"),
        ({"draws": np.array([0.0, 1.0])}, "draws"),
        ({"draws": np.array([0.5])}, "every request needs"),
    ],
)
def test_a_workload_that_is_none_is_refused(changes: dict[str, np.ndarray], message: str) -> None:
    values = {"arrival_seconds": np.array([0.0, 1.0]), "draws": np.array([0.0, 0.5]), **changes}
    with pytest.raises(ValueError, match=message):
        Workload(lengths=Lengths(prompt_tokens=np.array([1, 1]), output_tokens=np.array([1, 1])), **values)


@pytest.mark.parametrize(("prompts", "outputs"), [([1, 0], [1, 1]), ([1], [0]), ([1, 2], [1]), ([], [])])
def test_lengths_that_are_none_are_refused(prompts: list[int], outputs: list[int]) -> None:
    with pytest.raises(ValueError, match="lengths"):
        Lengths(prompt_tokens=np.array(prompts, np.int64), output_tokens=np.array(outputs, np.int64))
