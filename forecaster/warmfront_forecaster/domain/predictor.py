"""The live forecast: worked out when new data arrives, read in microseconds when asked for.

The window of a question moves with the clock and the service's start-up time; the path and its margins do not need to.
"""

from dataclasses import dataclass

import numpy as np

from warmfront_forecaster.domain.calendar import DAY_SECONDS
from warmfront_forecaster.domain.calibration import (
    MEMORY_STEPS,
    MIN_RESIDUALS,
    Scale,
    conformal_quantile,
    recent_error,
    scale_values,
)
from warmfront_forecaster.domain.models import FittedModel
from warmfront_forecaster.domain.series import STEP_SECONDS, FloatArray, Series, carry_forward, typical_level
from warmfront_forecaster.domain.window import Window, window_maxima
from warmfront_forecaster.errors import ModelError

NOMINAL_AGE_SECONDS = 60.0  # of the newest step when a question comes: it is fetched once a minute
WARM_UP_STEPS = 720  # before the residuals that count: the recent error remembers half a day
PATH_SECONDS = DAY_SECONDS + 2 * 3_600
PEAK_LEAD_SECONDS = 6 * 3_600.0  # peaks of the next day are given the margin of six hours ahead
PEAK_SLOT_SECONDS = 600.0
MEDIAN = 0.5


@dataclass(frozen=True, kw_only=True)
class LeadTime:
    """How far ahead a decision looks: from `seconds` (decision to warm) to twice that and a tick."""

    seconds: float
    tick_seconds: float

    def upper_window(self, age_seconds: float) -> Window:
        """(t+L, t+2L+tick), seen from the newest step, which is `age_seconds` old."""
        return Window.between(age_seconds + self.seconds, age_seconds + 2 * self.seconds + self.tick_seconds)

    def median_window(self, age_seconds: float) -> Window:
        """(t, t+L), seen from the newest step."""
        return Window.between(age_seconds, age_seconds + self.seconds)


@dataclass(frozen=True, kw_only=True)
class Margin:
    """What turns a point forecast of a window's maximum into a quantile of it: point + offset * scale(point)."""

    scale: Scale
    offset: float
    recent: float
    unit: float

    def bound(self, points: FloatArray) -> FloatArray:
        """The quantile for each point, never below zero."""
        scale = scale_values(self.scale, points, np.full(len(points), self.recent), self.unit)
        return np.maximum(0.0, points + self.offset * scale)


@dataclass(frozen=True, kw_only=True, eq=False)
class Predictor:
    """The forecast as of one step. `path[k]` is the expected demand at `as_of + (k+1) * STEP_SECONDS`."""

    as_of: int
    path: FloatArray
    lead: LeadTime
    quantile: float
    upper_margin: Margin
    median_margin: Margin
    peak_margin: Margin

    def upper(self, now: float) -> float:
        """The quantile of the maximum over (now+L, now+2L+tick)."""
        return self._bound(self.upper_margin, self.lead.upper_window(now - self.as_of))

    def median(self, now: float) -> float:
        """The median of the maximum over (now, now+L)."""
        return self._bound(self.median_margin, self.lead.median_window(now - self.as_of))

    def slots(self, now: float) -> tuple[FloatArray, FloatArray]:
        """The next day in slots of PEAK_SLOT_SECONDS: when each begins (Unix seconds), and the quantile of its maximum.

        Slots begin on whole ten minutes, so that a peak foretold keeps its times from one answer to the next.
        """
        begins = now // PEAK_SLOT_SECONDS * PEAK_SLOT_SECONDS + PEAK_SLOT_SECONDS * np.arange(DAY_SECONDS // PEAK_SLOT_SECONDS)
        first = np.maximum(0, (begins - self.as_of) // STEP_SECONDS).astype(int)
        last = np.maximum(first + 1, (begins + PEAK_SLOT_SECONDS - self.as_of) // STEP_SECONDS).astype(int)
        maxima = np.array([self.path[i:j].max() for i, j in zip(first, last, strict=True)])
        return begins, self.peak_margin.bound(maxima)

    def _bound(self, margin: Margin, window: Window) -> float:
        maximum = self.path[window.first - 1 : window.last].max(keepdims=True)
        return float(margin.bound(maximum)[0])


def predictor(fitted: FittedModel, scale: Scale, series: Series, lead: LeadTime, quantile: float) -> Predictor:
    """Work out the forecast from the newest measured step of `series`.

    Args:
        fitted: the champion.
        scale: the scale that it won with.
        series: demand, NaN where missing.
        lead: of the service, now.
        quantile: in (0, 1).

    Raises:
        ModelError: nothing was measured, there are too few residuals, or the path holds what no demand can be.
    """
    measured = np.flatnonzero(np.isfinite(series.values))
    if not len(measured):
        raise ModelError("nothing was measured yet", retryable=True)
    known = series.before(int(measured[-1]) + 1)
    steps = Window(first=1, last=PATH_SECONDS // STEP_SECONDS)
    path = _checked(carry_forward(fitted.paths(known, np.array([len(known) - 1]), steps)[0]))
    slot = Window.between(PEAK_LEAD_SECONDS, PEAK_LEAD_SECONDS + PEAK_SLOT_SECONDS)
    return Predictor(
        as_of=known.end,
        path=path,
        lead=lead,
        quantile=quantile,
        upper_margin=_margin(fitted, scale, known, lead.upper_window(NOMINAL_AGE_SECONDS), quantile),
        median_margin=_margin(fitted, scale, known, lead.median_window(NOMINAL_AGE_SECONDS), MEDIAN),
        peak_margin=_margin(fitted, scale, known, slot, quantile),
    )


def _margin(fitted: FittedModel, scale: Scale, series: Series, window: Window, quantile: float) -> Margin:
    """The conformal margin from the residuals of the last days; only those of windows that are over by now."""
    begin = max(0, len(series) - MEMORY_STEPS - WARM_UP_STEPS)
    origins = np.arange(begin, len(series))
    truth = window_maxima(series.values[begin:], window)
    point = fitted.paths(series, origins, window).max(axis=1)
    recent = recent_error(point, truth, window)
    unit = typical_level(series.values)
    residuals = ((truth - point) / scale_values(scale, point, recent, unit))[-MEMORY_STEPS:]
    known = np.sort(residuals[np.isfinite(residuals)])
    if len(known) < MIN_RESIDUALS:
        raise ModelError("the last days hold too few measurements to calibrate on", retryable=True)
    return Margin(scale=scale, offset=conformal_quantile(known, quantile), recent=float(recent[-1]), unit=unit)


def _checked(path: FloatArray) -> FloatArray:
    if not np.isfinite(path).all() or (path < 0).any():
        raise ModelError("the forecast holds what no demand can be (negative, infinite or not a number)")
    return path
