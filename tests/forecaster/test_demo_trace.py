"""The demo's own trace through the real code: trusted, and early by one to two start-ups, not by hours."""

import csv
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from warmfront_forecaster.domain.evaluation import Evaluation, evaluate
from warmfront_forecaster.domain.predictor import NOMINAL_AGE_SECONDS, LeadTime, predictor
from warmfront_forecaster.domain.series import Series, floor_step
from warmfront_forecaster.domain.trust import Evidence, Reason, State, judge
from warmfront_forecaster.fitting import all_models

TRACE = Path(__file__).parents[2] / "e2e" / "demo" / "trace" / "client13.csv"
DAY, HOUR = 86_400, 3_600
JUMP_SECONDS = 10 * DAY + 10 * HOUR + 600
LEAD = LeadTime(seconds=150.0, tick_seconds=15.0)
QUANTILE, TARGET = 0.95, 0.75
PLATEAU = 1.9  # replica-equivalents just after the jump: three replicas at 75 %
START = 1_800_000_000 // DAY * DAY  # the trace's second 0


@pytest.fixture(scope="module")
def demand() -> np.ndarray:
    """By the minute; [i] is the mean of the minute that begins at second 60 i."""
    with TRACE.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    rate = np.repeat([float(row["requests_per_second"]) for row in rows], 10)
    return rate / rate[JUMP_SECONDS // 60] * PLATEAU


def history(demand: np.ndarray, second: float) -> Series:
    """What is known at a second of the trace, five seconds after the minute."""
    return Series(start=START + 60, values=demand[: floor_step(second - 5) // 60])


@pytest.fixture(scope="module")
def evaluated(demand: np.ndarray) -> Evaluation:
    """As at 10:00 of day 10."""
    known = history(demand, 10 * DAY + 10 * HOUR + 5)
    return evaluate(known, all_models(ZoneInfo("UTC")), LEAD.upper_window(NOMINAL_AGE_SECONDS), QUANTILE)


@pytest.fixture(scope="module")
def uppers(demand: np.ndarray, evaluated: Evaluation) -> dict[int, float]:
    """The upper forecast of day 10 until after the jump, by second of the trace; in the last 15 minutes at each tick."""
    assert evaluated.champion is not None
    assert evaluated.fitted is not None
    found, known_to, forecast = {}, -1, None
    ticks = [*range(10 * DAY, JUMP_SECONDS - 900, 900), *range(JUMP_SECONDS - 900, JUMP_SECONDS + 60, 15)]
    for second in ticks:
        if floor_step(second - 5) != known_to or forecast is None:
            known_to = floor_step(second - 5)
            forecast = predictor(evaluated.fitted, evaluated.champion.scale, history(demand, second), LEAD, QUANTILE)
        found[second] = forecast.upper(START + second)
    return found


def test_the_trace_is_as_the_demo_says(demand: np.ndarray):
    peak = demand.max()
    for day in range(1, 11):
        jump = day * 1_440 + 610
        assert demand[jump - 1] == 0.0
        assert 0.53 < demand[jump] / peak < 0.6


def test_the_service_is_trusted_by_a_model_that_knows_yesterday(evaluated: Evaluation):
    now = START + 10 * DAY + 10 * HOUR + 5.0
    verdict = judge(
        Evidence(now=now, fetched=True, as_of=now - 5, measured_seconds=10.4 * DAY, evaluation=evaluated, quantile=QUANTILE)
    )
    assert (verdict.state, verdict.reason) == (State.TRUSTED, Reason.EVIDENCE_HOLDS)
    assert evaluated.champion is not None
    assert evaluated.champion.model == "YesterdayLevelled"
    assert QUANTILE - 0.07 <= evaluated.champion.coverage <= QUANTILE + 0.06
    assert evaluated.skill is not None
    assert evaluated.skill > 0.2  # measured: 0.31
    assert not evaluated.left_out


def test_scaling_begins_between_one_and_two_start_ups_before_the_jump(uppers: dict[int, float]):
    early = [JUMP_SECONDS - second for second, upper in uppers.items() if upper > TARGET]
    assert max(early) <= 2 * LEAD.seconds + LEAD.tick_seconds + 60
    assert max(early) >= LEAD.seconds + 60


def test_all_three_replicas_are_asked_for_a_whole_start_up_before(uppers: dict[int, float]):
    asked = min(second for second, upper in uppers.items() if np.ceil(upper / TARGET) >= 3)
    assert JUMP_SECONDS - asked >= LEAD.seconds
    assert uppers[JUMP_SECONDS] < 1.3 * PLATEAU  # and the margin asks for one more at most


def test_the_night_is_quiet(uppers: dict[int, float]):
    night = [upper for second, upper in uppers.items() if second < JUMP_SECONDS - 400]
    assert max(night) < 0.1
