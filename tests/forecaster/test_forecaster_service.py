"""The whole forecaster but for Prometheus and Prophet: a source of our own, a clock of our own, fits in this process."""

import asyncio
import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np
import pytest

from warmfront_forecaster.adapters.prometheus_source import Holdings, ServiceKey
from warmfront_forecaster.contract import CapacityQuery, ForecastsRequest, ServiceForecast, ServiceQuery
from warmfront_forecaster.domain.baselines import LastValue, SameTimeEarlier, YesterdayLevelled
from warmfront_forecaster.domain.demand import Traffic
from warmfront_forecaster.domain.evaluation import Evaluation, evaluate
from warmfront_forecaster.errors import PrometheusError, WorkerError
from warmfront_forecaster.fitting import FitJob
from warmfront_forecaster.metrics import Metrics
from warmfront_forecaster.planning.types import ForecastState
from warmfront_forecaster.service import Forecaster
from warmfront_forecaster.settings import Settings

DAY = 86_400
MIDNIGHT = 1_800_000_000 // DAY * DAY
JUMP = MIDNIGHT + 10 * 3_600 + 600  # 10:10, as on each day before
CAPACITY = CapacityQuery(prefill_tokens_per_second=1_000.0, decode_tokens_per_second=100.0, target_utilization=0.75)
REQUEST = {"prompt": 500.0, "output": 50.0}  # one second of a replica
BASELINES = (LastValue(), SameTimeEarlier(name="SameTimeYesterday", days=1), YesterdayLevelled())

Course = Callable[[np.ndarray], np.ndarray]


def jumps(times: np.ndarray) -> np.ndarray:
    """Arrivals per second: none until 10:10, two until 20:00, each day."""
    second = (times - 60) % DAY
    return np.where((second >= 36_600) & (second < 72_000), 2.0, 0.0)


@dataclass
class World:
    """Prometheus and the clock, as a test wants them."""

    now: float
    course: Course = jumps
    begins: int = MIDNIGHT - 5 * DAY
    ends: float = math.inf
    error: Exception | None = None
    fit_error: Exception | None = None
    held: Holdings = field(default_factory=lambda: Holdings(spacing_seconds=15.0))
    read: list[tuple[int, int]] = field(default_factory=list)
    was_read: threading.Event = field(default_factory=threading.Event)
    fits: int = 0

    def clock(self) -> float:
        return self.now

    def holdings(self, service: ServiceKey, start: int) -> Holdings:  # noqa: ARG002
        if self.error:
            raise self.error
        return self.held

    def spacing_seconds(self, service: ServiceKey) -> float | None:  # noqa: ARG002
        return self.held.spacing_seconds

    def traffic(self, service: ServiceKey, start: int, end: int, spacing_seconds: float | None = None) -> Traffic:  # noqa: ARG002
        if self.error:
            raise self.error
        self.read.append((start, end))
        self.was_read.set()
        times = np.arange(start, end + 1, 60)
        known = (times > self.begins) & (times <= self.ends)
        arrivals = np.where(known, self.course(times), np.nan)
        served = known & (arrivals > 0)
        return Traffic(
            start=start,
            arrivals=arrivals,
            prompt_tokens=np.where(served, REQUEST["prompt"], np.nan),
            output_tokens=np.where(served, REQUEST["output"], np.nan),
        )

    async def fit(self, job: FitJob) -> Evaluation:
        self.fits += 1
        if self.fit_error:
            raise self.fit_error
        return evaluate(job.series, BASELINES, job.window, job.quantile, job.earlier)


class Session:
    """An operator that asks, and the time between its questions."""

    def __init__(self, world: World, **query: object) -> None:
        self.world = world
        self.query = {"namespace": "ml", "name": "chat", "capacity": CAPACITY, "lead_time_seconds": 150.0, "replicas": 1} | query
        self.forecaster = Forecaster(source=world, fit=world.fit, settings=Settings(), metrics=Metrics(), clock=world.clock)

    def ask(self, **changes: object) -> ServiceForecast:
        self.query |= changes
        query = ServiceQuery.model_validate(self.query)
        request = ForecastsRequest(now=datetime.fromtimestamp(self.world.now, UTC), services=[query])
        return self.forecaster.forecasts(request).services[0]

    async def wait(self, seconds: float = 0.0) -> None:
        """Let time pass, and what is due be done: reading first, then evaluating."""
        self.world.now += seconds
        for _ in range(2):
            self.forecaster.turn()
            await self.forecaster.settle()

    async def later(self, seconds: float) -> ServiceForecast:
        await self.wait(seconds)
        return self.ask()


async def started(world: World, **query: object) -> Session:
    """Asked once, history read, evaluated."""
    session = Session(world, **query)
    session.ask()
    await session.wait()
    return session


async def test_a_new_service_learns_at_once_and_is_trusted_after_the_first_fit():
    session = Session(World(now=JUMP - 3_600 + 7))
    first = session.ask()
    assert (first.state, first.reason) == (ForecastState.LEARNING, "FirstFitPending")
    assert first.upper is None
    await session.wait()
    found = session.ask()
    assert (found.state, found.reason) == (ForecastState.TRUSTED, "EvidenceHolds")
    assert found.model == "SameTimeYesterday"  # each day is exactly like the other
    assert found.max_demand_seen == pytest.approx(2.0)
    assert found.upper == pytest.approx(0.0, abs=0.1)
    assert found.as_of == datetime.fromtimestamp(JUMP - 3_600, UTC)


async def test_the_upper_forecast_rises_as_now_approaches_yesterdays_jump():
    session = await started(World(now=JUMP - 1_200 + 7))
    rises = None
    while session.world.now < JUMP and rises is None:
        answer = await session.later(15)
        rises = JUMP - session.world.now if (answer.upper or 0) > 1.0 else None
    assert rises is not None
    assert 2 * 150 - 15 <= rises <= 2 * 150 + 15 + 60


async def test_a_longer_start_up_looks_further_ahead_at_once():
    session = await started(World(now=JUMP - 480 + 7))
    assert (session.ask().upper or 0) < 0.2
    assert (session.ask(lead_time_seconds=400.0).upper or 0) > 1.0
    assert session.world.fits == 1


async def test_more_capacity_is_less_demand_at_once_and_evaluated_again():
    session = await started(World(now=JUMP + 3_600 + 7))
    before = session.ask()
    doubled = CAPACITY.model_copy(update={"prefill_tokens_per_second": 2_000.0, "decode_tokens_per_second": 200.0})
    after = session.ask(capacity=doubled)
    assert after.max_demand_seen == pytest.approx((before.max_demand_seen or 0) / 2)
    assert after.upper == pytest.approx((before.upper or 0) / 2, rel=0.01)
    await session.wait(15)
    assert session.world.fits == 2


async def test_peaks_say_when_more_replicas_will_be_needed():
    session = await started(World(now=JUMP - 3_600 + 7))
    (peak,) = session.ask().peaks
    assert peak.start <= datetime.fromtimestamp(JUMP, UTC) < peak.end
    assert peak.replicas == 3  # 2.0 and a margin, at 75 %
    assert session.ask(replicas=3).peaks == []


async def test_what_came_since_is_read_each_minute_and_all_of_it_four_times_a_day():
    session = await started(World(now=JUMP - 3_600 + 7))
    (start, end), *_ = session.world.read
    assert end - start == 28 * DAY
    await session.wait(15)
    assert len(session.world.read) == 1
    await session.wait(60)
    assert session.world.read[1:] == [(end - 300, end + 60)]
    session.ask()
    session.world.now += 6 * 3_600 - 900
    session.ask()
    await session.wait(900)
    assert session.world.read[-1][1] - session.world.read[-1][0] == 28 * DAY


async def test_data_that_stops_degrades_and_comes_back():
    world = World(now=JUMP + 3_607.0, ends=JUMP + 3_600)
    session = await started(world)
    assert session.ask().state is ForecastState.TRUSTED
    assert (await session.later(120)).state is ForecastState.TRUSTED
    late = await session.later(120)
    assert (late.state, late.reason) == (ForecastState.DEGRADED, "DataMissing")
    assert late.upper is not None
    gone = await session.later(800)
    assert gone.upper is None
    world.ends = math.inf
    assert (await session.later(60)).state is ForecastState.TRUSTED


async def test_prometheus_that_goes_away_is_named_and_asked_again_soon():
    world = World(now=JUMP + 3_607.0)
    session = await started(world)
    world.error = PrometheusError("nobody listens", retryable=True)
    answer = await session.later(240)
    assert (answer.state, answer.reason) == (ForecastState.DEGRADED, "DataMissing")
    assert "nobody listens" in answer.message
    world.error = None
    assert (await session.later(15)).state is ForecastState.TRUSTED


async def test_an_outage_is_logged_once_until_it_changes(caplog: pytest.LogCaptureFixture):
    world = World(now=float(JUMP), error=PrometheusError("nobody listens", retryable=True))
    session = await started(world)
    for _ in range(4):
        await session.later(15)
    world.error = PrometheusError("no token", retryable=False)
    await session.later(15)
    assert [record.getMessage().split(": ")[-1] for record in caplog.records] == ["nobody listens", "no token"]


async def test_prometheus_away_from_the_start_is_the_reason():
    session = await started(World(now=float(JUMP), error=PrometheusError("no token", retryable=False)))
    answer = session.ask()
    assert (answer.state, answer.reason, answer.message) == (ForecastState.LEARNING, "PrometheusUnavailable", "no token")


async def test_a_failed_fit_leaves_the_previous_forecast_once_then_none():
    world = World(now=JUMP + 3_607.0)
    session = await started(world)
    world.fit_error = WorkerError("took too long")
    for _ in range(4):
        session.ask()
        await session.wait(900)
    once = session.ask()
    assert world.fits == 2
    assert (once.state, once.upper is None) == (ForecastState.TRUSTED, False)
    await session.wait(300)
    twice = session.ask()
    assert (twice.state, twice.reason, twice.upper) == (ForecastState.SHADOW, "FitFailed", None)
    assert "took too long" in twice.message
    world.fit_error = None
    assert (await session.later(300)).state is ForecastState.TRUSTED


async def test_a_bug_in_a_fit_is_one_services_failure_and_no_crash(caplog: pytest.LogCaptureFixture):
    session = await started(World(now=float(JUMP), fit_error=ZeroDivisionError("oops")))
    answer = session.ask()
    assert (answer.reason, answer.upper) == ("FitFailed", None)
    assert "Traceback" in caplog.text


async def test_who_is_not_asked_for_is_forgotten():
    session = await started(World(now=float(JUMP)))
    read = len(session.world.read)
    await session.wait(901)
    await session.wait(60)
    assert len(session.world.read) == read
    assert session.ask().reason == "FirstFitPending"


async def test_retention_shorter_than_asked_is_said():
    held = Holdings(spacing_seconds=15.0, retention_seconds=5.0 * DAY, holds_start=False)
    answer = (await started(World(now=JUMP + 3_607.0, held=held))).ask()
    assert answer.state is ForecastState.TRUSTED
    assert answer.message.endswith("History is 5.5 of the 28 days asked for: Prometheus keeps 5 days")


async def test_scrapes_too_far_apart_are_said_and_seen_to_be_mended():
    world = World(now=JUMP + 3_607.0, held=Holdings(spacing_seconds=30.0))
    session = await started(world)
    assert session.ask().reason == "MetricsTooCoarse"
    world.held = Holdings(spacing_seconds=15.0)
    assert (await session.later(60)).state is ForecastState.TRUSTED


def noise(times: np.ndarray) -> np.ndarray:
    return np.random.default_rng(int(times[0])).gamma(2.0, size=len(times))


def with_holes(times: np.ndarray) -> np.ndarray:
    return np.where(times // 600 % 3 == 0, np.nan, jumps(times))


def outage(times: np.ndarray) -> np.ndarray:
    return np.where((times > MIDNIGHT - 2 * DAY) & (times < MIDNIGHT - DAY), np.nan, jumps(times))


ODD: dict[str, World] = {
    "gaps of ten minutes twice an hour": World(now=JUMP + 7.0, course=with_holes),
    "an outage of a whole day": World(now=JUMP + 7.0, course=outage),
    "always zero": World(now=JUMP + 7.0, course=lambda times: np.zeros(len(times))),
    "constant": World(now=JUMP + 7.0, course=lambda times: np.full(len(times), 3.0)),
    "pure noise": World(now=JUMP + 7.0, course=noise),
    "not a number": World(now=JUMP + 7.0, course=lambda times: np.full(len(times), np.nan)),
    "two hours old": World(now=JUMP + 7.0, begins=JUMP - 7_200),
    "no series at all": World(now=JUMP + 7.0, begins=JUMP + DAY),
    "enormous": World(now=JUMP + 7.0, course=lambda times: 1e15 * jumps(times)),
    "a spike of one step": World(now=JUMP + 7.0, course=lambda times: np.where(times == MIDNIGHT - DAY, 1e9, 1.0)),
    "the autumn change of the clocks": World(now=datetime(2026, 10, 25, 9, tzinfo=UTC).timestamp(), begins=0),
    "the spring change of the clocks": World(now=datetime(2026, 3, 29, 9, tzinfo=UTC).timestamp(), begins=0),
}


@pytest.mark.parametrize("world", ODD.values(), ids=ODD.keys())
async def test_odd_histories_never_reach_the_caller_as_nonsense(world: World):
    session = await started(world, timezone="Europe/Berlin", history_days=6)
    for seconds in (0, 60, 60, 900):
        answer = await session.later(seconds)
        numbers = [answer.upper, answer.median, answer.max_demand_seen]
        assert all(number is None or (math.isfinite(number) and number >= 0) for number in numbers)
        assert answer.reason
        assert answer.message
        assert answer.model_dump_json()


async def test_learning_says_how_long_it_takes():
    session = await started(World(now=JUMP + 7.0, begins=JUMP - 7_200))
    answer = session.ask()
    assert (answer.state, answer.reason, answer.message) == (
        ForecastState.LEARNING,
        "NotEnoughHistory",
        "needs 46 h more history",
    )
    assert answer.ready_at == datetime.fromtimestamp(JUMP + 7 + 46 * 3_600, UTC)
    assert session.world.fits == 0


async def test_services_that_are_asked_for_together_are_answered_in_order():
    session = Session(World(now=float(JUMP)))
    queries = [ServiceQuery.model_validate(session.query | {"name": name}) for name in ("b", "a", "c")]
    request = ForecastsRequest(now=datetime.fromtimestamp(JUMP, UTC), services=queries)
    assert [answer.name for answer in session.forecaster.forecasts(request).services] == ["b", "a", "c"]


async def test_the_loop_starts_on_a_new_service_without_waiting_for_its_next_turn():
    session = Session(World(now=JUMP + 3_607.0))
    loop = asyncio.create_task(session.forecaster.run())
    await asyncio.sleep(0)  # its first turn, with nobody enrolled
    session.ask()
    assert await asyncio.to_thread(session.world.was_read.wait, 0.9)  # a turn comes each second
    loop.cancel()
    await session.forecaster.settle()


@pytest.mark.parametrize("days", [0, 5])
async def test_a_timezone_that_does_not_exist_is_named_at_once_and_never_fitted(days: int):
    world = World(now=JUMP, begins=MIDNIGHT - days * DAY)
    session = Session(world, timezone="Mars/Phobos")
    session.ask()
    await session.wait()
    answer = session.ask()
    assert (answer.state, answer.reason) == (ForecastState.SHADOW, "UnknownTimezone")
    assert answer.message.startswith(
        "scaling.predictive.timezone 'Mars/Phobos' is not in the IANA database: use a name such as Europe/Berlin"
    )
    assert world.fits == 0


async def test_a_timezone_made_wrong_takes_the_forecast_away_and_made_right_brings_it_back():
    session = Session(World(now=JUMP - 600))
    session.ask()
    await session.wait()
    assert session.ask().upper is not None
    assert session.ask(timezone="Europe").upper is None
    assert session.ask(timezone="Europe/Berlin").reason != "UnknownTimezone"
    await session.wait()
    assert session.ask().upper is not None


async def test_no_peak_begins_in_the_past():
    session = Session(World(now=JUMP + 430))
    session.ask()
    await session.wait()
    first = session.ask().peaks[0]
    assert first.start.timestamp() == JUMP + 430
    assert first.end > first.start
