"""A forecast that is a curve over time, worked out beforehand, moved to today's level. What Prophet leaves behind."""

from dataclasses import dataclass

import numpy as np

from warmfront_forecaster.domain.baselines import Level
from warmfront_forecaster.domain.models import IntArray
from warmfront_forecaster.domain.series import STEP_SECONDS, FloatArray, Series
from warmfront_forecaster.domain.window import Window

DEFAULT_LEVEL = Level(memory_seconds=450.0, reach_seconds=7_200.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class LogCurve:
    """Expected log(1 + d/unit) at `start + i * step_seconds` (Unix seconds); nothing is said outside."""

    start: int
    step_seconds: int
    values: FloatArray
    unit: float
    level: Level = DEFAULT_LEVEL

    def paths(self, series: Series, origins: IntArray, window: Window) -> FloatArray:
        """The curve plus the level of the last minutes, back as demand."""
        first, last = max(0, int(origins.min()) - self.level.tail_steps), int(origins.max())
        curve = self._at(series.start + STEP_SECONDS * np.arange(first, last + window.last + 1, dtype=np.int64))
        logs = np.log1p(series.values[first : last + 1] / self.unit)
        path = self.level.lift(curve, logs, origins - first, window)
        return self.unit * np.expm1(np.maximum(path, 0.0))

    def _at(self, times: IntArray) -> FloatArray:
        known = self.start + self.step_seconds * np.arange(len(self.values))
        return np.interp(times, known, self.values, left=np.nan, right=np.nan)
