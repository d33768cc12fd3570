"""Rolling-origin evaluation: the right model wins, a broken one does not take part, and nobody sees the future."""

from dataclasses import dataclass

import numpy as np
import pytest

from warmfront_forecaster.domain.baselines import LastValue, SameTimeEarlier, YesterdayLevelled
from warmfront_forecaster.domain.calibration import Scale
from warmfront_forecaster.domain.evaluation import Evaluation, Score, evaluate
from warmfront_forecaster.domain.models import FittedModel
from warmfront_forecaster.domain.series import Series
from warmfront_forecaster.domain.window import Window

DAY = 1_440
START = 1_800_000_000 // 86_400 * 86_400
WINDOW = Window(first=3, last=7)
BASELINES = (LastValue(), SameTimeEarlier(name="SameTimeYesterday", days=1), YesterdayLevelled())


def series(values: np.ndarray) -> Series:
    return Series(start=START + 60, values=np.asarray(values, dtype=float))


def noisy_days(days: int, seed: int = 0) -> np.ndarray:
    """Rest at night, a jump at ten, rest again at twenty; a tenth of noise."""
    step = np.arange(days * DAY) % DAY
    course = np.where((step >= 600) & (step < 1_200), 2.0, 0.0)
    return course * np.random.default_rng(seed).gamma(100.0, 0.01, size=len(course))


def walk(days: int) -> np.ndarray:
    """No hour is like the same hour of another day."""
    rng = np.random.default_rng(3)
    return 5.0 + np.abs(np.cumsum(rng.normal(0, 0.05, days * DAY)))


@dataclass(frozen=True)
class Broken:
    """A model that gives what no demand can be, or raises."""

    value: float | None
    name: str = "Broken"
    refit_seconds: int | None = None

    def fit(self, series: Series) -> FittedModel:  # noqa: ARG002
        if self.value is None:
            raise ZeroDivisionError("no luck")
        return self

    def paths(self, series: Series, origins: np.ndarray, window: Window) -> np.ndarray:  # noqa: ARG002
        out = np.ones((len(origins), window.width))
        out[len(origins) // 2, 1] = self.value
        return out


@dataclass
class Counting:
    """A model that is refitted, and counts how often; always right about a constant."""

    fitted: int = 0
    name: str = "Counting"
    refit_seconds: int | None = 86_400

    def fit(self, series: Series) -> FittedModel:
        self.fitted += 1
        assert series.end % 86_400 == 0
        return LastValue()


def test_where_each_day_is_like_the_other_its_course_wins():
    found = evaluate(series(noisy_days(8)), BASELINES, WINDOW, 0.95)
    assert found.champion is not None
    assert found.champion.model in {"YesterdayLevelled", "SameTimeYesterday"}
    assert found.skill is not None
    assert found.skill > 0.1
    assert 0.9 <= found.champion.coverage <= 1.0


def test_where_no_day_is_like_another_the_last_value_wins():
    found = evaluate(series(walk(6)), BASELINES, WINDOW, 0.95)
    assert found.champion is not None
    assert found.champion.model == "LastValue"
    assert found.skill == 0.0


@pytest.mark.parametrize("value", [None, -1.0, float("inf"), float("nan")])
def test_a_broken_model_is_left_out_with_its_reason_and_the_others_go_on(value: float | None):
    found = evaluate(series(noisy_days(4)), (*BASELINES, Broken(value)), WINDOW, 0.9)
    assert list(found.left_out) == ["Broken"]
    assert found.left_out["Broken"]
    assert found.champion is not None
    assert {score.model for score in found.scores} == {model.name for model in BASELINES}


def test_all_models_are_scored_on_the_same_steps_and_gaps_are_not_scored():
    values = noisy_days(6)
    values[5 * DAY + 700 : 5 * DAY + 900] = np.nan
    whole, gap = (evaluate(series(v), BASELINES, WINDOW, 0.95).scored_seconds for v in (noisy_days(6), values))
    # 200 missing steps, and the windows that only reach into them
    assert whole - gap == 60 * (200 + WINDOW.width - 1)


def test_a_second_evaluation_fits_only_what_is_new():
    model, values = Counting(), np.ones(6 * DAY)
    first = evaluate(series(values), (LastValue(), model), WINDOW, 0.95)
    assert model.fitted == 4  # at the ends of days 3 to 6
    evaluate(series(np.ones(6 * DAY + 60)), (LastValue(), model), WINDOW, 0.95, first.fits)
    assert model.fitted == 4
    evaluate(series(np.ones(7 * DAY)), (LastValue(), model), WINDOW, 0.95, first.fits)
    assert model.fitted == 5


@pytest.mark.parametrize(
    "values",
    [np.zeros(5 * DAY), np.full(5 * DAY, 3.0), np.full(5 * DAY, np.nan), np.array([1.0]), np.array([]), noisy_days(1)],
    ids=["always zero", "constant", "nothing measured", "one step", "no step", "one day"],
)
def test_odd_histories_are_evaluated_without_complaint(values: np.ndarray):
    found = evaluate(series(values), BASELINES, WINDOW, 0.95)
    assert isinstance(found, Evaluation)
    assert all(np.isfinite(score.loss) and score.loss >= 0 for score in found.scores)


def test_a_service_at_rest_is_covered_by_ties_and_that_is_honest():
    found = evaluate(series(np.zeros(5 * DAY)), BASELINES, WINDOW, 0.8)
    assert found.champion is not None
    assert found.champion.coverage == 1.0
    assert found.champion.calibrated(0.8)


def score(coverage: float, loss: float = 1.0) -> Score:
    return Score(model="M", scale=Scale.ROOT, loss=loss, coverage=coverage, coverage_strict=coverage, coverage_recent=coverage)


@pytest.mark.parametrize(("coverage", "honest"), [(0.82, False), (0.84, True), (0.95, True), (0.97, False)])
def test_coverage_is_accepted_within_its_band(coverage: float, honest: bool):
    assert score(coverage).calibrated(0.9) is honest
