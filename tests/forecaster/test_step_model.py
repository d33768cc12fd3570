"""The step model and the token-level engine: speeds in closed form, and what holds for any load."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warmfront_forecaster.capacity.step_model import StepModel
from warmfront_forecaster.capacity.token_engine import EngineLimits, Step, TokenEngine, Work

MODEL = StepModel(
    base_seconds=0.02, per_sequence_seconds=0.001, per_kv_token_seconds=0.000_002, per_prefill_token_seconds=0.000_1
)


def limits(**changes: int) -> EngineLimits:
    values = {"max_num_seqs": 8, "max_num_batched_tokens": 64, "kv_blocks": 64, "block_tokens": 4, **changes}
    return EngineLimits(**values)


def work(name: str, prompt: int, output: int) -> Work:
    return Work(request_id=name, prompt_tokens=prompt, output_tokens=output)


def run(engine: TokenEngine, *, most_steps: int = 100_000) -> list[Step]:
    steps = []
    while engine.has_work:
        steps.append(engine.step())
        assert len(steps) < most_steps, "the engine makes no progress"
    return steps


def engine_with(*works: Work, model: StepModel = MODEL, **changes: int) -> TokenEngine:
    engine = TokenEngine(limits=limits(**changes), model=model)
    for one in works:
        engine.add(one)
    return engine


def test_a_step_takes_the_sum_of_its_four_terms() -> None:
    assert MODEL.seconds(batch=10, kv_tokens=5000, prefill_tokens=100) == pytest.approx(0.02 + 0.01 + 0.01 + 0.01)


@pytest.mark.parametrize("value", [-0.1, float("nan"), float("inf")])
def test_a_coefficient_that_is_no_duration_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="finite and at least 0"):
        StepModel(base_seconds=0.01, per_sequence_seconds=value)


def test_a_step_without_base_time_is_refused() -> None:
    with pytest.raises(ValueError, match="base_seconds must be above 0"):
        StepModel(base_seconds=0)


def test_one_request_alone_takes_its_prefill_and_one_step_for_each_further_token() -> None:
    steps = run(engine_with(work("a", 40, 5)))
    prefill = 0.02 + 40 * 0.000_002 + 40 * 0.000_1
    decode = sum(0.02 + 0.001 + (40 + k) * 0.000_002 for k in range(1, 5))
    assert sum(step.duration_seconds for step in steps) == pytest.approx(prefill + decode)
    assert [step.produced for step in steps] == [{"a": 1}] * 5


def test_a_prompt_longer_than_a_step_takes_is_computed_in_chunks_and_gives_its_first_token_after_the_last() -> None:
    steps = run(engine_with(work("a", 150, 1)))
    assert [step.prefill_tokens for step in steps] == [64, 64, 22]
    assert [step.produced for step in steps] == [{}, {}, {"a": 1}]


def test_decoding_goes_before_prefill_in_the_budget_of_a_step() -> None:
    engine = engine_with(work("a", 8, 10))
    engine.step()
    engine.add(work("b", 100, 2))
    step = engine.step()
    assert (step.batch, step.prefill_tokens, step.produced) == (1, 63, {"a": 1})


@pytest.mark.parametrize("batch", [1, 7, 32])
def test_the_decode_rate_of_a_full_batch_is_the_closed_form(batch: int) -> None:
    model = StepModel(base_seconds=0.02, per_sequence_seconds=0.0005)
    works = [work(str(i), 4, 200) for i in range(batch)]
    engine = engine_with(*works, model=model, max_num_seqs=batch, max_num_batched_tokens=512, kv_blocks=4096)
    steps = run(engine)[1:]  # the first step is the prefill of all
    tokens = sum(len(step.produced) for step in steps)
    seconds = sum(step.duration_seconds for step in steps)
    assert tokens / seconds == pytest.approx(batch / (0.02 + 0.0005 * batch))
    assert model.decode_tokens_per_second(batch=batch, context_tokens=100) == pytest.approx(tokens / seconds)


def test_the_prefill_rate_is_the_one_that_was_set() -> None:
    rate = 8_000
    model = StepModel(base_seconds=1e-9, per_prefill_token_seconds=1 / rate)
    works = [work(str(i), 500, 1) for i in range(20)]
    steps = run(engine_with(*works, model=model, kv_blocks=10_000, max_num_batched_tokens=2048))
    assert 20 * 500 / sum(step.duration_seconds for step in steps) == pytest.approx(rate, rel=1e-3)


def test_no_more_than_the_batch_runs_and_the_next_enters_when_one_leaves() -> None:
    engine = engine_with(work("a", 4, 2), work("b", 4, 5), work("c", 4, 1), max_num_seqs=2)
    engine.step()
    assert (engine.running, engine.waiting) == (("a", "b"), ("c",))
    engine.step()
    assert engine.running == ("b",)
    assert engine.step().admitted == ("c",)


def test_a_head_that_does_not_fit_is_not_overtaken() -> None:
    engine = engine_with(work("a", 40, 20), work("long", 40, 1), work("short", 4, 1), kv_blocks=19)
    engine.step()
    assert (engine.running, engine.waiting) == (("a",), ("long", "short"))


def test_when_blocks_run_out_the_last_to_arrive_loses_its_kv_and_is_computed_again_first() -> None:
    # 10 blocks of 4 tokens: both prompts take 4 blocks; each fifth token of output needs one more.
    engine = engine_with(work("old", 16, 20), work("new", 16, 20), work("later", 36, 1), kv_blocks=10)
    steps = run(engine)
    preempted = [step.preempted for step in steps if step.preempted]
    assert preempted == [("new",)]
    finished = [name for step in steps for name in step.finished]
    assert finished == ["old", "new", "later"]
    again = next(step for step in steps if step.batch == 0 and step.prefill_tokens > 16 and not step.admitted)
    assert again.prefill_tokens == 16 + sum("new" in step.produced for step in steps[: steps.index(again)])


def test_an_aborted_request_gives_its_kv_back_at_once() -> None:
    engine = engine_with(work("a", 40, 100), work("b", 40, 100))
    engine.step()
    used = engine.kv_blocks_used
    assert engine.abort("a")
    assert engine.kv_blocks_used < used
    assert engine.abort("b")
    assert engine.kv_blocks_used == 0
    assert not engine.has_work
    assert not engine.abort("b")


@pytest.mark.parametrize(
    ("one", "message"),
    [
        (work("a", 0, 1), "at least one token"),
        (work("a", 1, 0), "at least one token"),
        (work("a", 200, 100), "needs 299 KV tokens, the engine holds 256"),
    ],
)
def test_work_that_can_never_be_done_is_refused(one: Work, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        engine_with(one)


def test_the_same_id_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="already"):
        engine_with(work("a", 1, 1), work("a", 1, 1))


def test_limits_under_which_a_full_batch_cannot_decode_are_refused() -> None:
    with pytest.raises(ValueError, match="cannot decode"):
        limits(max_num_seqs=65)


lengths = st.tuples(st.integers(1, 120), st.integers(1, 60))
loads = st.lists(lengths, min_size=1, max_size=25)
engines = st.builds(
    limits,
    max_num_seqs=st.integers(1, 12),
    max_num_batched_tokens=st.integers(12, 80),
    kv_blocks=st.integers(45, 120),  # the longest request needs 45 blocks
)


@settings(max_examples=60, deadline=None)
@given(load=loads, bounds=engines, gap=st.integers(0, 5))
def test_any_load_is_served_whole_within_the_bounds(load: list[tuple[int, int]], bounds: EngineLimits, gap: int) -> None:
    engine = TokenEngine(limits=bounds, model=MODEL)
    coming = [work(f"{index:03}", *length) for index, length in enumerate(load)]
    produced = dict.fromkeys((one.request_id for one in coming), 0)
    prefilled = steps = preemptions = 0
    admitted: list[str] = []
    finished: set[str] = set()
    queue = list(coming)
    while queue or engine.has_work:
        if queue and steps % (gap + 1) == 0:
            engine.add(queue.pop(0))
        step = engine.step()
        steps += 1
        assert steps < 50_000, "the engine makes no progress"
        # KV never exceeds the cache, the batch never its bound, the step never its budget.
        assert 0 <= step.kv_blocks_used <= bounds.kv_blocks
        assert engine.kv_blocks_used == sum(bounds.blocks(tokens) for _, tokens in engine.kv_tokens_by_request())
        assert step.running <= bounds.max_num_seqs
        assert step.batch + step.prefill_tokens <= bounds.max_num_batched_tokens
        assert step.duration_seconds >= MODEL.base_seconds
        # Whoever came earlier is ahead of whoever came later, at all times.
        order = (*engine.running, *engine.waiting)
        assert list(order) == sorted(order)
        for name, count in step.produced.items():
            produced[name] += count
            assert name not in finished
        finished.update(step.finished)
        admitted += step.admitted
        prefilled += step.prefill_tokens
        preemptions += len(step.preempted)
    assert produced == {one.request_id: one.output_tokens for one in coming}
    assert finished == set(produced)
    assert admitted == sorted(produced)
    prompts = sum(one.prompt_tokens for one in coming)
    assert prefilled == prompts if preemptions == 0 else prefilled > prompts
    assert engine.kv_blocks_used == 0


@settings(max_examples=25, deadline=None)
@given(load=loads)
def test_without_pressure_nothing_is_preempted_and_first_tokens_come_in_order_of_arrival(load: list[tuple[int, int]]) -> None:
    engine = engine_with(*(work(f"{i:03}", *length) for i, length in enumerate(load)), kv_blocks=2000)
    steps = run(engine)
    first: list[str] = []
    for step in steps:
        first += [name for name in step.produced if name not in first]
        assert not step.preempted
    assert first == sorted(first)


@settings(max_examples=25, deadline=None)
@given(load=loads, at=st.integers(0, 40), victim=st.integers(0, 24))
def test_an_abort_at_any_time_leaves_the_others_whole(load: list[tuple[int, int]], at: int, victim: int) -> None:
    engine = engine_with(*(work(f"{i:03}", *length) for i, length in enumerate(load)))
    gone = f"{victim % len(load):03}"
    produced = dict.fromkeys((f"{i:03}" for i in range(len(load))), 0)
    count, aborted = 0, False
    while engine.has_work:
        if count == at:
            aborted = engine.abort(gone)
            if not engine.has_work:
                break
        for name in engine.step().produced:
            produced[name] += 1
        count += 1
    for index, (_, output) in enumerate(load):
        name = f"{index:03}"
        assert produced[name] == output or (aborted and name == gone)
    assert engine.kv_blocks_used == 0
