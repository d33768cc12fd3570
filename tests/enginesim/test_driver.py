"""The engine in real time, on a clock that the test moves: speeds, ticks, lag, aborts, and the metrics of it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from prometheus_client.parser import text_string_to_metric_families

from e2e.enginesim.driver import EngineDriver, Sequence
from e2e.enginesim.errors import QueueFullError
from e2e.enginesim.metrics import EngineMetrics
from warmfront_forecaster.capacity.step_model import StepModel
from warmfront_forecaster.capacity.token_engine import EngineLimits, TokenEngine, Work

LIMITS = EngineLimits(max_num_seqs=4, max_num_batched_tokens=64, kv_blocks=100)


class Time:
    """A clock that stands still but while somebody sleeps; each sleep takes `late` seconds more than asked."""

    def __init__(self, *, late: float = 0.0) -> None:
        self.now = 1000.0
        self.late = late
        self.sleeps = 0

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.sleeps += 1
        self.now += seconds + self.late
        await asyncio.sleep(0)


class Bench:
    """A driver under test."""

    def __init__(
        self, time: Time, *, base_seconds: float = 0.02, tick_seconds: float = 0.0, max_queued: int | None = None
    ) -> None:
        self.time = time
        self.metrics = EngineMetrics(model_name="m", limits=LIMITS, max_model_len=1000)
        self.engine = TokenEngine(limits=LIMITS, model=StepModel(base_seconds=base_seconds))
        self.driver = EngineDriver(
            engine=self.engine,
            metrics=self.metrics,
            clock=time.clock,
            sleep=time.sleep,
            tick_seconds=tick_seconds,
            max_queued=max_queued,
        )

    def value(self, name: str, **labels: str) -> float:
        families = text_string_to_metric_families(self.metrics.render().decode())
        samples = [one for family in families for one in family.samples if one.name == f"vllm:{name}"]
        (sample,) = [one for one in samples if labels.items() <= one.labels.items()]
        return sample.value

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.driver.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def sequence(name: str, *, prompt: int = 8, output: int = 10) -> Sequence:
    work = Work(request_id=name, prompt_tokens=prompt, output_tokens=output)
    return Sequence(work=work, max_tokens=output, finish_reason="length")


async def finish(bench: Bench, *sequences: Sequence) -> list[dict[int, int]]:
    """Submit and take all tokens; the batches as they came."""
    missing = sum(one.work.output_tokens for one in sequences)
    batches = []
    async for batch in bench.driver.submit(list(sequences), choices=len(sequences)).batches():
        batches.append(batch)
        missing -= sum(batch.values())
        if missing == 0:
            break
    return batches


async def test_a_request_takes_the_time_of_its_steps() -> None:
    bench = Bench(Time())
    async with bench.running():
        batches = await finish(bench, sequence("a", output=10))
    assert bench.time.now == pytest.approx(1000 + 10 * 0.02)
    assert batches == [{0: 1}] * 10


async def test_sleeps_that_come_late_do_not_slow_the_engine_down() -> None:
    bench = Bench(Time(late=0.003))
    async with bench.running():
        await finish(bench, sequence("a", output=100))
    assert bench.time.now == pytest.approx(1000 + 100 * 0.02, abs=0.005)


async def test_a_process_that_was_held_up_does_not_make_up_for_it_in_a_burst() -> None:
    bench = Bench(Time())
    async with bench.running():
        delivery = bench.driver.submit([sequence("a", output=50)], choices=1).batches()
        await anext(delivery)
        bench.time.now += 3.0
        held_up_until = bench.time.now
        taken = 1
        async for batch in delivery:
            taken += sum(batch.values())
            if taken == 50:
                break
    # One step was under way when it was held up; the 48 after it take their time.
    assert bench.time.now == pytest.approx(held_up_until + 48 * 0.02, abs=0.021)


async def test_steps_shorter_than_a_tick_share_a_wake_up() -> None:
    bench = Bench(Time(), base_seconds=0.001, tick_seconds=0.01)
    async with bench.running():
        await finish(bench, sequence("a", output=100))
    assert bench.time.now == pytest.approx(1000 + 100 * 0.001)
    assert bench.time.sleeps == 10


async def test_steps_longer_than_a_tick_are_delivered_one_by_one() -> None:
    bench = Bench(Time(), base_seconds=0.02, tick_seconds=0.005)
    async with bench.running():
        assert await finish(bench, sequence("a", output=5)) == [{0: 1}] * 5


async def test_the_metrics_tell_the_times_of_a_request() -> None:
    bench = Bench(Time())
    async with bench.running():
        await finish(bench, sequence("a", prompt=100, output=4))  # two steps of prefill: 64 and 36 tokens
    assert bench.value("time_to_first_token_seconds_sum") == pytest.approx(0.04)
    assert bench.value("inter_token_latency_seconds_sum") == pytest.approx(0.06)
    assert bench.value("e2e_request_latency_seconds_sum") == pytest.approx(0.10)
    assert bench.value("request_queue_time_seconds_sum") == 0
    assert bench.value("prompt_tokens_total") == 100
    assert bench.value("generation_tokens_total") == 4
    assert bench.value("request_success_total", finished_reason="length") == 1


async def test_a_fifth_request_waits_for_one_of_four_places() -> None:
    bench = Bench(Time())
    async with bench.running():
        await finish(bench, *(sequence(name, output=10) for name in "abcde"))
    # Four prompts of 8 in the first step; the fifth is scheduled after the ten steps of the others.
    assert bench.value("request_queue_time_seconds_sum") == pytest.approx(10 * 0.02)
    assert bench.time.now == pytest.approx(1000 + 20 * 0.02)


async def test_an_abort_frees_the_engine_and_counts_as_nothing() -> None:
    bench = Bench(Time())
    async with bench.running():
        batches = bench.driver.submit([sequence("a", output=500)], choices=1).batches()
        await anext(batches)
        assert bench.value("num_requests_running") == 1
        assert bench.value("kv_cache_usage_perc") > 0
        bench.driver.abort(["a"])
        assert not bench.engine.has_work
        await finish(bench, sequence("b", output=1))
        for _ in range(3):
            await asyncio.sleep(0)
    assert bench.value("num_requests_running") == 0
    assert bench.value("kv_cache_usage_perc") == 0
    assert bench.value("request_success_total", finished_reason="abort") == 0
    assert bench.value("request_success_total", finished_reason="length") == 1


async def test_a_full_queue_refuses_and_counts_it() -> None:
    bench = Bench(Time(), max_queued=2)
    bench.driver.submit([sequence("a"), sequence("b")], choices=2)
    with pytest.raises(QueueFullError) as refused:
        bench.driver.submit([sequence("c")], choices=1)
    assert refused.value.status == 503
    assert bench.value("admission_rejections_total", reason="max_num_queued_reqs") == 1
    bench.driver.abort(["a"])
    bench.driver.submit([sequence("c")], choices=1)
