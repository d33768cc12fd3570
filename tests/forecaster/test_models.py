"""The models: right on what they are made for, blind to the future, sane on anything."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warmfront_forecaster.domain.baselines import LastValue, SameTimeEarlier, YesterdayLevelled
from warmfront_forecaster.domain.curve import LogCurve
from warmfront_forecaster.domain.models import FittedModel, ForecastModel, Refitted
from warmfront_forecaster.domain.series import Series
from warmfront_forecaster.domain.window import Window

DAY = 1_440
START = 1_800_000_000 // 86_400 * 86_400
WINDOW = Window(first=3, last=7)
NAN = float("nan")

LAST, DAY_AGO, WEEK_AGO, LEVELLED = (
    LastValue(),
    SameTimeEarlier(name="SameTimeYesterday", days=1),
    SameTimeEarlier(name="SameTimeLastWeek", days=7),
    YesterdayLevelled(),
)
MODELS: list[ForecastModel] = [LAST, DAY_AGO, WEEK_AGO, LEVELLED]
names = [model.name for model in MODELS]


def series(values: np.ndarray) -> Series:
    return Series(start=START, values=np.asarray(values, dtype=float))


def path(model: ForecastModel, values: np.ndarray, origin: int, window: Window = WINDOW) -> list[float]:
    return model.fit(series(values)).paths(series(values), np.array([origin]), window)[0].tolist()


def weekdays() -> np.ndarray:
    """Two weeks whose days differ: level = day of the week, course = time of day."""
    step = np.arange(14 * DAY)
    return (1.0 + step // DAY % 7) * (step % DAY)


def test_the_last_value_goes_on_also_through_a_gap():
    assert path(LAST, np.array([1.0, 2.0, NAN, NAN]), 3, Window(first=1, last=3)) == [2.0, 2.0, 2.0]


def test_each_seasonal_model_repeats_its_own_period():
    values, origin = weekdays(), 13 * DAY + 600
    steps = np.arange(origin + 3, origin + 8)
    assert path(DAY_AGO, values, origin) == values[steps - DAY].tolist()
    assert path(WEEK_AGO, values, origin) == values[steps - 7 * DAY].tolist()


def test_where_yesterday_is_missing_the_day_before_stands_in_and_in_the_end_the_last_value():
    values = np.tile(np.arange(DAY, dtype=float), 3)
    origin = 2 * DAY + 100
    values[DAY:] = NAN
    assert path(DAY_AGO, values, origin) == [103.0, 104.0, 105.0, 106.0, 107.0]
    values[:DAY] = NAN
    values[0] = 7.0
    assert path(DAY_AGO, values, origin) == [7.0] * 5


def jump_at_ten(level: float) -> np.ndarray:
    return np.where(np.arange(DAY) >= 600, level, 0.0)


def test_yesterdays_course_foretells_the_jump_from_rest():
    values = np.r_[jump_at_ten(2.0), jump_at_ten(2.0)]
    assert path(LEVELLED, values, DAY + 595) == pytest.approx([0.0, 0.0, 2.0, 2.0, 2.0])


def test_yesterdays_course_stands_on_todays_level():
    values = np.r_[jump_at_ten(2.0), jump_at_ten(3.0)]
    assert path(LEVELLED, values, DAY + 700, Window(first=1, last=2)) == pytest.approx([3.0, 3.0], rel=0.02)


def test_a_day_that_ended_early_is_not_expected_to_end_again():
    values = np.r_[jump_at_ten(2.0), np.where(np.arange(DAY) < 700, jump_at_ten(2.0), 0.0)]
    assert path(LEVELLED, values, DAY + 730, Window(first=1, last=2)) == pytest.approx([0.0, 0.0], abs=0.04)


def jump_missing(steps_late: int) -> np.ndarray:
    """Two days with a jump at ten, and a third at rest until `steps_late` after ten."""
    return np.concatenate([jump_at_ten(2.0), jump_at_ten(2.0), np.zeros(600 + steps_late)])


@pytest.mark.parametrize("late", [1, 2, 5])
def test_a_jump_that_is_a_few_minutes_late_is_still_expected_in_full(late: int):
    values = jump_missing(late)
    assert path(LEVELLED, values, len(values) - 1) == pytest.approx([2.0] * 5)


def test_a_jump_that_does_not_come_is_given_up_within_a_quarter_of_an_hour():
    values = jump_missing(15)
    assert max(path(LEVELLED, values, len(values) - 1)) < 0.2


def test_a_gap_in_todays_measurements_is_not_a_low_level():
    values = jump_missing(0)
    values[-3:] = NAN
    assert path(LEVELLED, values, len(values) - 1) == pytest.approx([2.0] * 5)


def test_far_ahead_todays_level_is_forgotten():
    values = np.r_[np.full(DAY, 2.0), np.full(720, 4.0)]
    near, far = (
        path(LEVELLED, values, DAY + 719, Window(first=1, last=1)),
        path(LEVELLED, values, DAY + 719, Window(first=700, last=700)),
    )
    assert near[0] == pytest.approx(4.0, rel=0.03)
    assert far[0] == pytest.approx(2.0, rel=0.03)


@pytest.mark.parametrize("model", MODELS, ids=names)
def test_no_model_looks_beyond_its_origin(model: ForecastModel):
    rng = np.random.default_rng(1)
    past = rng.gamma(2.0, size=10 * DAY)
    other = past.copy()
    origin = 9 * DAY
    other[origin + 1 :] = rng.gamma(9.0, size=len(past) - origin - 1)
    fitted = model.fit(series(past))
    seen, changed = (fitted.paths(series(values), np.array([origin]), WINDOW).tolist() for values in (past, other))
    assert seen == changed


@settings(max_examples=30, deadline=None)
@given(
    values=st.lists(st.one_of(st.just(NAN), st.just(0.0), st.floats(0, 1e6)), min_size=1, max_size=40),
    repeat=st.integers(1, 120),
    model=st.sampled_from(MODELS),
)
def test_whatever_was_measured_a_forecast_is_finite_and_not_negative(values: list[float], repeat: int, model: ForecastModel):
    whole = np.repeat(np.array(values), repeat)
    found = model.fit(series(whole)).paths(series(whole), np.arange(len(whole)), WINDOW)
    begun = np.isfinite(whole).cumsum() > 0
    assert np.isfinite(found[begun]).all()
    assert (found[begun] >= 0).all()
    assert np.isnan(found[~begun]).all()


def test_a_curve_is_moved_to_todays_level_and_silent_outside():
    curve = LogCurve(start=START, step_seconds=600, values=np.full(10, np.log1p(1.0)), unit=1.0)
    today = np.full(60, 3.0)
    found = curve.paths(series(today), np.array([59]), Window(first=1, last=60))[0]
    assert found[0] == pytest.approx(3.0, rel=0.02)
    assert np.isnan(found[-1])


def test_each_origin_meets_the_fit_that_was_in_force():
    class Constant:
        def __init__(self, value: float) -> None:
            self.value = value

        def paths(self, series: Series, origins: np.ndarray, window: Window) -> np.ndarray:  # noqa: ARG002
            return np.full((len(origins), window.width), self.value)

    fits: list[FittedModel] = [Constant(1.0), Constant(2.0)]
    refitted = Refitted(starts=(START + 60, START + 180), fits=fits)
    found = refitted.paths(series(np.zeros(5)), np.arange(5), Window(first=1, last=1))[:, 0]
    assert np.allclose(found, [NAN, 1.0, 1.0, 2.0, 2.0], equal_nan=True)
