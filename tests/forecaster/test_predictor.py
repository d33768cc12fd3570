"""The live forecast: moves with the clock and the start-up time, and never says what no demand can be."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from warmfront_forecaster.domain.baselines import LastValue, SameTimeEarlier, YesterdayLevelled
from warmfront_forecaster.domain.calibration import Scale
from warmfront_forecaster.domain.models import ForecastModel
from warmfront_forecaster.domain.predictor import LeadTime, Predictor, predictor
from warmfront_forecaster.domain.series import Series
from warmfront_forecaster.errors import ModelError

DAY = 1_440
START = 1_800_000_000 // 86_400 * 86_400
LEAD = LeadTime(seconds=150.0, tick_seconds=15.0)
MODELS = (LastValue(), SameTimeEarlier(name="SameTimeYesterday", days=1), YesterdayLevelled())
NAN = float("nan")


def jumps(days: float) -> np.ndarray:
    """Zero until 10:10, two until 20:00, each day."""
    step = np.arange(int(days * DAY)) % DAY
    return np.where((step >= 610) & (step < 1_200), 2.0, 0.0)


def forecast(values: np.ndarray, lead: LeadTime = LEAD) -> Predictor:
    series = Series(start=START + 60, values=np.asarray(values, dtype=float))
    return predictor(YesterdayLevelled().fit(series), Scale.ROOT, series, lead, 0.95)


JUMP = START + 4 * 86_400 + 610 * 60


@pytest.mark.parametrize("lead_seconds", [60.0, 150.0, 300.0, 900.0])
def test_the_upper_forecast_rises_when_the_window_reaches_yesterdays_jump(lead_seconds: float):
    lead = LeadTime(seconds=lead_seconds, tick_seconds=15.0)
    made = forecast(jumps(4 + 580 / DAY), lead)
    rises = next(now for now in range(made.as_of, JUMP, 5) if made.upper(now) > 1.0)
    reach = 2 * lead_seconds + 15
    assert reach <= JUMP - rises + 60
    assert JUMP - rises <= reach + 60


def test_the_median_is_of_the_start_up_alone():
    made = forecast(jumps(4 + 580 / DAY))
    assert made.median(JUMP - 240) == 0.0
    assert made.median(JUMP - 100) == pytest.approx(2.0)


def test_a_fresh_answer_does_not_need_fresh_data():
    made = forecast(jumps(4 + 580 / DAY))
    assert made.upper(made.as_of) == 0.0
    assert made.upper(made.as_of + 1_500) > 1.0


def test_a_missing_end_is_forecast_over():
    values = jumps(4 + 580 / DAY)
    values[-5:] = NAN
    made = forecast(values)
    assert made.as_of == START + 60 * (len(values) - 5)
    assert made.upper(JUMP - 200) > 1.0


def test_peaks_are_looked_for_on_whole_ten_minutes():
    made = forecast(jumps(4 + 580 / DAY))
    begins, uppers = made.slots(made.as_of + 77.0)
    assert len(begins) == len(uppers) == 144
    assert (begins % 600 == 0).all()
    assert begins[0] <= made.as_of + 77.0 < begins[1]
    first = begins[uppers > 1.0][0]
    assert first <= JUMP < first + 600


@pytest.mark.parametrize("values", [[], [NAN] * 3_000, [1.0] * 100], ids=["no step", "nothing measured", "an hour and a half"])
def test_without_enough_data_there_is_no_forecast_and_it_is_said(values: list[float]):
    with pytest.raises(ModelError) as caught:
        forecast(np.array(values))
    assert caught.value.retryable


def hostile() -> st.SearchStrategy[np.ndarray]:
    """Days of demand with gaps, outages, zeros and bursts."""
    hours = st.lists(st.one_of(st.just(NAN), st.just(0.0), st.floats(0, 1e9), st.floats(0, 1e-9)), min_size=12, max_size=60)
    return hours.map(lambda values: np.repeat(np.array(values, dtype=float), 60))


# The least number above zero, after hours without measurements: a share of it is zero, and nothing can be divided by that.
NEXT_TO_NOTHING = np.repeat([NAN] * 11 + [5e-324], 60)


@settings(max_examples=40, deadline=None)
@given(values=hostile(), model=st.sampled_from(MODELS), scale=st.sampled_from(list(Scale)), age=st.floats(-60, 900))
@example(values=NEXT_TO_NOTHING, model=MODELS[0], scale=Scale.RECENT_ERROR, age=0.0)
@example(values=NEXT_TO_NOTHING, model=MODELS[0], scale=Scale.ROOT, age=0.0)
@example(values=NEXT_TO_NOTHING, model=MODELS[0], scale=Scale.ABSOLUTE, age=0.0)
@example(values=NEXT_TO_NOTHING, model=MODELS[-1], scale=Scale.ROOT, age=0.0)
def test_any_history_gives_a_forecast_that_is_a_demand_or_none(
    values: np.ndarray, model: ForecastModel, scale: Scale, age: float
):
    series = Series(start=START + 60, values=values)
    try:
        made = predictor(model.fit(series), scale, series, LEAD, 0.95)
    except ModelError:
        return
    numbers = [made.upper(made.as_of + age), made.median(made.as_of + age), *made.slots(made.as_of + age)[1]]
    assert all(math.isfinite(number) and number >= 0 for number in numbers)


def test_more_of_the_quantile_is_never_less_demand():
    rng = np.random.default_rng(5)
    values = jumps(4) * rng.gamma(50, 0.02, size=4 * DAY)
    series = Series(start=START + 60, values=values)
    uppers = [predictor(LastValue(), Scale.ABSOLUTE, series, LEAD, q).upper(series.end + 60) for q in (0.5, 0.8, 0.9, 0.99)]
    assert uppers == sorted(uppers)


def test_a_path_that_no_demand_can_have_is_refused():
    class Negative(LastValue):
        def paths(self, series: Series, origins: np.ndarray, window: object) -> np.ndarray:
            return -1.0 - super().paths(series, origins, window)  # type: ignore[arg-type]

    with pytest.raises(ModelError, match="negative"):
        predictor(replace(Negative()), Scale.ROOT, Series(start=START, values=np.ones(3 * DAY)), LEAD, 0.9)
