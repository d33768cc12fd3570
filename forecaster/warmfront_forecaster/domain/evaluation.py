"""Which model would have been right: every one forecasts the service's own last days, from each minute of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from warmfront_forecaster.domain.baselines import LastValue
from warmfront_forecaster.domain.calendar import DAY_SECONDS
from warmfront_forecaster.domain.calibration import Scale, Target, pinball, recent_error, scale_values, upper_bounds
from warmfront_forecaster.domain.models import FittedModel, ForecastModel, Refitted
from warmfront_forecaster.domain.series import STEP_SECONDS, FloatArray, Series, typical_level
from warmfront_forecaster.domain.window import Window, window_maxima
from warmfront_forecaster.errors import ModelError

BoolArray = npt.NDArray[np.bool_]

DAY_STEPS = DAY_SECONDS // STEP_SECONDS
SCORED_DAYS = 7
RECENT_DAYS = 1
LEAST_FIT_STEPS = 2 * DAY_STEPS  # nothing is fitted on less
COVERAGE_BELOW = 0.07  # how far the share covered may lie under the quantile, and
COVERAGE_ABOVE = 0.06  # above it
BASELINE = LastValue().name


@dataclass(frozen=True, kw_only=True)
class Score:
    """How one model with one scale did on the scored steps.

    `loss`: mean pinball loss, in the unit of the series. `coverage`: share of windows at or below the quantile;
    `coverage_strict`: below it. They differ where demand has exact ties (a service at rest), and then any quantile
    between the two is honest.
    """

    model: str
    scale: Scale
    loss: float
    coverage: float
    coverage_strict: float
    coverage_recent: float  # over the last RECENT_DAYS

    def calibrated(self, quantile: float) -> bool:
        """Whether the share covered is what was asked for."""
        return self.coverage >= quantile - COVERAGE_BELOW and self.coverage_strict <= quantile + COVERAGE_ABOVE


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """What the rolling-origin evaluation found. `champion` None: no model could be scored.

    `fits`: the refitted models by name, to be handed to the next evaluation, which then fits only what is new.
    `left_out`: models that did not take part, and why.
    """

    champion: Score | None
    fitted: FittedModel | None
    baseline_loss: float
    scored_steps: int
    scores: tuple[Score, ...]
    fits: Mapping[str, Refitted] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def scored_seconds(self) -> float:
        """How much of the past was scored, gaps left out."""
        return float(self.scored_steps * STEP_SECONDS)

    @property
    def skill(self) -> float | None:
        """Share of the last value's loss that the champion saves; None where there is no loss to save."""
        if self.champion is None or self.baseline_loss <= 0:
            return None
        return 1.0 - self.champion.loss / self.baseline_loss


@dataclass(frozen=True, kw_only=True)
class _Course:
    """The past seen from each origin: what there was to forecast."""

    series: Series
    target: Target
    unit: float
    scored: range

    @property
    def scored_truth(self) -> FloatArray:
        return self.target.truth[self.scored.start :]


def evaluate(
    series: Series,
    models: Sequence[ForecastModel],
    window: Window,
    quantile: float,
    earlier: Mapping[str, Refitted] | None = None,
) -> Evaluation:
    """Score each model with each scale on the last SCORED_DAYS and pick the champion.

    The champion has the least pinball loss at the quantile of the window's maximum among those whose coverage is right;
    where none's is, among all (and then it is not trusted). A model that raises, or forecasts what no demand can be
    (negative, infinite, not a number), is left out, not scored.

    Args:
        series: demand, NaN where missing.
        models: with the last value among them.
        window: what a decision looks at.
        quantile: in (0, 1).
        earlier: `fits` of an earlier evaluation of the same demand.
    """
    course = _course(series, window, quantile)
    fitted: dict[str, FittedModel] = {}
    points: dict[str, FloatArray] = {}
    left_out: dict[str, str] = {}
    for model in models:
        try:
            fitted[model.name] = _fit_over_time(model, course, (earlier or {}).get(model.name))
            points[model.name] = _points(fitted[model.name], course)
        except Exception as error:  # noqa: BLE001 - a model is a guest: whatever it does, the others go on
            left_out[model.name] = f"{type(error).__name__}: {error}" if not isinstance(error, ModelError) else str(error)
    return _judge(course, points, fitted, left_out)


def _course(series: Series, window: Window, quantile: float) -> _Course:
    return _Course(
        series=series,
        target=Target(truth=window_maxima(series.values, window), window=window, quantile=quantile),
        unit=typical_level(series.values),
        scored=range(max(0, len(series) - SCORED_DAYS * DAY_STEPS), len(series)),
    )


def _fit_over_time(model: ForecastModel, course: _Course, earlier: Refitted | None) -> FittedModel:
    """One fit where nothing is estimated; else one at each multiple of `refit_seconds`, from a day before what is scored."""
    if model.refit_seconds is None:
        return model.fit(course.series)
    known = dict(zip(earlier.starts, earlier.fits, strict=True)) if earlier else {}
    starts = _fit_times(course, model.refit_seconds)
    if not starts:
        raise ModelError(f"{model.name} needs two days of history before its first fit")
    fits = [known[start] if start in known else model.fit(_until(course.series, start)) for start in starts]
    return Refitted(starts=tuple(starts), fits=tuple(fits))


def _fit_times(course: _Course, refit_seconds: int) -> list[int]:
    """Multiples of `refit_seconds`, so that the next evaluation meets the same ones; the newest is within the series."""
    series = course.series
    first = series.start + STEP_SECONDS * max(LEAST_FIT_STEPS, course.scored.start - DAY_STEPS)
    begin = -(-first // refit_seconds) * refit_seconds
    return list(range(begin, series.end + 1, refit_seconds))


def _until(series: Series, time: int) -> Series:
    return series.before((time - series.start) // STEP_SECONDS + 1)


def _points(fitted: FittedModel, course: _Course) -> FloatArray:
    """The forecast of the window's maximum from each origin, shape (n,).

    Raises:
        ModelError: it holds what no demand can be. Nothing to say (NaN on a whole path) is allowed.
    """
    if not len(course.series):
        raise ModelError("has no history")
    paths = fitted.paths(course.series, np.arange(len(course.series)), course.target.window)
    if np.isinf(paths).any():
        raise ModelError("forecasts an infinite demand")
    if (paths < 0).any():
        raise ModelError("forecasts a negative demand")
    silent = np.isnan(paths)
    if (silent.any(axis=1) & ~silent.all(axis=1)).any():
        raise ModelError("forecasts something that is not a number")
    return np.asarray(paths.max(axis=1), dtype=np.float64)


def _judge(
    course: _Course, points: Mapping[str, FloatArray], fitted: Mapping[str, FittedModel], left_out: Mapping[str, str]
) -> Evaluation:
    bounds = _all_bounds(course, points)
    same, silent = _common_steps(course, bounds)
    scores = (
        tuple(_score(key, bound, course, same) for key, bound in bounds.items() if key[0] not in silent) if same.any() else ()
    )
    champion = _champion(scores, course.target.quantile)
    return Evaluation(
        champion=champion,
        fitted=fitted[champion.model] if champion else None,
        baseline_loss=min((score.loss for score in scores if score.model == BASELINE), default=0.0),
        scored_steps=int(same.sum()),
        scores=scores,
        fits={name: fit for name, fit in fitted.items() if isinstance(fit, Refitted)},
        left_out={**left_out, **dict.fromkeys(silent, "has too little history to be scored on")},
    )


def _all_bounds(course: _Course, points: Mapping[str, FloatArray]) -> dict[tuple[str, Scale], FloatArray]:
    bounds = {}
    for name, point in points.items():
        recent = recent_error(point, course.target.truth, course.target.window)
        for kind in Scale:
            scale = scale_values(kind, point, recent, course.unit)
            bounds[name, kind] = upper_bounds(point, scale, course.target, course.scored)
    return bounds


def _common_steps(course: _Course, bounds: Mapping[tuple[str, Scale], FloatArray]) -> tuple[BoolArray, frozenset[str]]:
    """The scored steps on which all have something to say: losses compare only there. And who mostly has not."""
    truth = np.isfinite(course.scored_truth)
    baseline = truth & np.isfinite(bounds.get((BASELINE, Scale.ABSOLUTE), np.full(len(truth), np.nan)))
    said = {key: baseline & np.isfinite(bound) for key, bound in bounds.items()}
    silent = frozenset(key[0] for key, mask in said.items() if mask.sum() * 2 < baseline.sum())
    masks = [mask for key, mask in said.items() if key[0] not in silent]
    return np.logical_and.reduce([baseline, *masks]), silent


def _score(key: tuple[str, Scale], bound: FloatArray, course: _Course, same: BoolArray) -> Score:
    truth = course.scored_truth
    recent = same & (np.arange(len(same)) >= len(same) - RECENT_DAYS * DAY_STEPS)
    return Score(
        model=key[0],
        scale=key[1],
        loss=float(pinball(truth[same], bound[same], course.target.quantile).mean()),
        coverage=float((truth[same] <= bound[same]).mean()),
        coverage_strict=float((truth[same] < bound[same]).mean()),
        coverage_recent=float((truth[recent] <= bound[recent]).mean()) if recent.any() else 1.0,
    )


def _champion(scores: Sequence[Score], quantile: float) -> Score | None:
    honest = [score for score in scores if score.calibrated(quantile)]
    return min(honest or scores, key=lambda score: score.loss, default=None)
