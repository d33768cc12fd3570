"""The simple forecasts: last value, same time yesterday, same time last week, and yesterday's course from today's level.

None estimates anything, so none can go wrong in a way of its own. Where the day they look back to has no measurement,
they look one period further back, and in the end to the last value.
"""

import math
from dataclasses import dataclass
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from warmfront_forecaster.domain.calendar import same_time_earlier
from warmfront_forecaster.domain.models import FittedModel, IntArray
from warmfront_forecaster.domain.series import (
    STEP_SECONDS,
    FloatArray,
    Series,
    alpha_of_half_life,
    carry_forward,
    smooth,
    typical_level,
)
from warmfront_forecaster.domain.window import Window

UTC = ZoneInfo("UTC")
LOOK_BACKS = 3  # periods tried before the last value
LATE_STEPS = 5  # that a daily jump from rest may come late: until then nobody can tell a late one from none
REST_STEPS = 10  # of nothing before it: fewer are the gaps between the requests of a quiet service


@dataclass(frozen=True, kw_only=True)
class LastValue:
    """What was measured last goes on."""

    name: str = "LastValue"
    refit_seconds: int | None = None

    def fit(self, series: Series) -> FittedModel:  # noqa: ARG002 - nothing to learn
        """It is its own fit."""
        return self

    def paths(self, series: Series, origins: IntArray, window: Window) -> FloatArray:
        """The newest measured value, on all steps."""
        last = carry_forward(series.values)[origins]
        return np.repeat(last[:, None], window.width, axis=1)


@dataclass(frozen=True, kw_only=True)
class SameTimeEarlier:
    """What was measured at the same time on the wall, `days` days before."""

    name: str
    days: int
    zone: ZoneInfo = UTC
    refit_seconds: int | None = None

    def fit(self, series: Series) -> FittedModel:  # noqa: ARG002 - nothing to learn
        """It is its own fit."""
        return self

    def paths(self, series: Series, origins: IntArray, window: Window) -> FloatArray:
        """The earlier days' values, else the last one."""
        targets = range(int(origins.min()), int(origins.max()) + window.last + 1)
        path = at_steps(seasonal_values(series, self.days, self.zone, targets), origins - targets.start, window)
        return np.where(np.isfinite(path), path, LastValue().paths(series, origins, window))


@dataclass(frozen=True, kw_only=True)
class Level:
    """How far recent values lie from a curve of logarithms, and how long that is expected to last."""

    memory_seconds: float  # half-life of what counts as recent
    reach_seconds: float  # half of it is left this far ahead

    @property
    def tail_steps(self) -> int:
        """How much of the past counts: thirty half-lives, a billionth."""
        return math.ceil(30 * self.memory_seconds / STEP_SECONDS)

    def lift(self, curve: FloatArray, logs: FloatArray, origins: IntArray, window: Window) -> FloatArray:
        """The curve (indexed as `logs`, and on) at the window's steps, moved by the level at each origin: (n, width)."""
        level = smooth(logs - curve[: len(logs)], alpha_of_half_life(self.memory_seconds))
        left: FloatArray = 0.5 ** (STEP_SECONDS * np.arange(window.first, window.last + 1) / self.reach_seconds)
        return at_steps(curve, origins, window) + np.nan_to_num(level[origins])[:, None] * left


LEVEL = Level(memory_seconds=120.0, reach_seconds=3_600.0)


@dataclass(frozen=True, kw_only=True)
class YesterdayLevelled:
    """Yesterday's course, moved to today's level: the seasonal random walk, in logarithms.

    With l = log(1 + d/unit):  l[t+k] = l[t+k-day] + decay(k) * level[t],  level = smoothed l[t] - l[t-day].
    Knows both that demand jumps at ten each day and that today is a busier day; far ahead, only the first is left.
    While a jump from rest is a few minutes late, it is still expected in full (LATE_STEPS).
    """

    name: str = "YesterdayLevelled"
    zone: ZoneInfo = UTC
    refit_seconds: int | None = None

    def fit(self, series: Series) -> FittedModel:
        """Learn the unit."""
        return LevelledCourse(zone=self.zone, unit=typical_level(series.values))


@dataclass(frozen=True, kw_only=True)
class LevelledCourse:
    """`YesterdayLevelled`, fitted."""

    zone: ZoneInfo
    unit: float

    def paths(self, series: Series, origins: IntArray, window: Window) -> FloatArray:
        """Yesterday's logarithm plus the level, back as demand."""
        targets = range(max(0, int(origins.min()) - LEVEL.tail_steps), int(origins.max()) + window.last + 1)
        seasonal = np.log1p(seasonal_values(series, 1, self.zone, targets) / self.unit)
        logs = np.log1p(series.values[targets.start : int(origins.max()) + 1] / self.unit)
        logs[_awaits_jump(logs, seasonal[: len(logs)])] = np.nan
        path = LEVEL.lift(seasonal, logs, origins - targets.start, window)
        demand = self.unit * np.expm1(np.maximum(path, 0.0))
        return np.where(np.isfinite(demand), demand, LastValue().paths(series, origins, window))


def _awaits_jump(today: FloatArray, yesterday: FloatArray) -> npt.NDArray[np.bool_]:
    """Steps of rest at which yesterday had left its rest for at most LATE_STEPS, shape (n,). They say nothing of the level.

    A jump two minutes late would otherwise read as a day of half the demand, just when pods for it must be started.
    """
    rest_today = _all_rest(today, REST_STEPS + LATE_STEPS)
    rested_yesterday = np.zeros(len(yesterday), dtype=bool)
    rested_yesterday[LATE_STEPS:] = _all_rest(yesterday, REST_STEPS)[:-LATE_STEPS]
    return rest_today & rested_yesterday


def _all_rest(values: FloatArray, steps: int) -> npt.NDArray[np.bool_]:
    """[t]: nothing was measured above zero in the `steps` until t. False before there are as many."""
    rest = np.zeros(len(values), dtype=bool)
    if len(values) >= steps:
        rest[steps - 1 :] = ~(sliding_window_view(values, steps) > 0).any(axis=1)
    return rest


def seasonal_values(series: Series, days: int, zone: ZoneInfo, targets: range) -> FloatArray:
    """For each target step the newest measured value at the same wall time one, two .. LOOK_BACKS periods of `days` before."""
    times = series.start + STEP_SECONDS * np.arange(targets.start, targets.stop, dtype=np.int64)
    found = np.full(len(times), np.nan)
    for period in range(1, LOOK_BACKS + 1):
        index = (same_time_earlier(times, days * period, zone) - series.start) // STEP_SECONDS
        known = (index >= 0) & (index < len(series))
        values = np.where(known, series.values[np.clip(index, 0, len(series) - 1)], np.nan)
        found = np.where(np.isfinite(found), found, values)
    return found


def at_steps(curve: FloatArray, origins: IntArray, window: Window) -> FloatArray:
    """curve[origin + step] for each origin and step of the window, shape (n, width)."""
    steps = np.arange(window.first, window.last + 1)
    return np.asarray(curve[origins[:, None] + steps], dtype=np.float64)
