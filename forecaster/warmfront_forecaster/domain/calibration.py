"""From a point forecast of the window's maximum to a quantile of it: split conformal prediction, online.

Upper = f + b * s, with b the conformal quantile of (y - f) / s over the last days (Vovk et al., "Algorithmic Learning in
a Random World", 2005, section 4.1; scaled residuals: Lei et al., JASA 2018). Each scale s is right for some services:
errors that cluster in time, arrival noise, on and off. A forecast for t+last is judged at t+last, never earlier.
"""

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from warmfront_forecaster.domain.series import STEP_SECONDS, FloatArray, alpha_of_half_life, smooth
from warmfront_forecaster.domain.window import Window

MEMORY_STEPS = 3 * 86_400 // STEP_SECONDS  # residuals kept: three days, so that each time of day is in it three times
MIN_RESIDUALS = 4 * 3_600 // STEP_SECONDS
REFRESH_STEPS = 10  # the quantile of 4,320 residuals is not another one a minute later
HALF_LIFE_FAST_SECONDS = 4_000.0  # about an hour
HALF_LIFE_SLOW_SECONDS = 41_000.0  # about half a day
FLOOR = 0.001  # of the unit: keeps a scale above zero where the service rests


class Scale(StrEnum):
    """In what an error is measured."""

    RECENT_ERROR = "RecentError"
    ROOT = "Root"
    ABSOLUTE = "Absolute"


def recent_error(point: FloatArray, truth: FloatArray, window: Window) -> FloatArray:
    """How wrong the forecast has been of late, known at each t: from windows that ended by t. Shape (n,)."""
    error = np.full(len(point), np.nan)
    error[window.last :] = np.abs(truth - point)[: max(0, len(point) - window.last)]
    fast = smooth(error, alpha_of_half_life(HALF_LIFE_FAST_SECONDS))
    slow = smooth(error, alpha_of_half_life(HALF_LIFE_SLOW_SECONDS))
    return fast + 0.5 * slow


def scale_values(scale: Scale, point: FloatArray, recent: FloatArray, unit: float) -> FloatArray:
    """The size that an error may have at each forecast. `unit`: the level at which the series is "about one" (typical_level)."""
    floor = FLOOR * unit
    if scale is Scale.RECENT_ERROR:
        return recent + FLOOR * (point + floor)
    if scale is Scale.ROOT:
        return np.sqrt(np.maximum(point, floor) * unit)
    return np.full(len(point), unit)


def conformal_quantile(sorted_residuals: FloatArray, quantile: float) -> float:
    """The ceil(q (m+1))-th smallest of m residuals; the largest where m is too small for q."""
    count = len(sorted_residuals)
    return float(sorted_residuals[min(count, math.ceil(quantile * (count + 1))) - 1])


def rolling_offsets(residuals: FloatArray, delay: int, quantile: float, origins: range) -> FloatArray:
    """The offset b at each origin, from the last MEMORY_STEPS residuals that were known there. NaN: fewer than MIN_RESIDUALS."""
    out = np.full(len(origins), np.nan)
    for i in range(0, len(origins), REFRESH_STEPS):
        end = origins[i] - delay + 1
        recent = residuals[max(0, end - MEMORY_STEPS) : max(0, end)]
        known = np.sort(recent[np.isfinite(recent)])
        if len(known) >= MIN_RESIDUALS:
            out[i : i + REFRESH_STEPS] = conformal_quantile(known, quantile)
    return out


@dataclass(frozen=True, kw_only=True, eq=False)
class Target:
    """What is forecast: the `quantile` of `truth[t]`, the maximum over t's window. Shape (n,), NaN where unknown."""

    truth: FloatArray
    window: Window
    quantile: float


def upper_bounds(point: FloatArray, scale: FloatArray, target: Target, origins: range) -> FloatArray:
    """The quantile at each origin t, never below zero. NaN: too few residuals, or no point forecast.

    Args:
        point: f[t], forecast of the window's maximum, shape (n,).
        scale: s[t], shape (n,), known at t.
        target: what is forecast.
        origins: the t wanted.
    """
    offsets = rolling_offsets((target.truth - point) / scale, target.window.last, target.quantile, origins)
    at = slice(origins.start, origins.stop)
    return np.maximum(0.0, point[at] + scale[at] * offsets)


def pinball(truth: FloatArray, forecast: FloatArray, quantile: float) -> FloatArray:
    """The loss whose expectation is least at the quantile: q per unit below, 1-q per unit above (Koenker & Bassett 1978)."""
    short = truth - forecast
    return np.maximum(quantile * short, (quantile - 1) * short)
