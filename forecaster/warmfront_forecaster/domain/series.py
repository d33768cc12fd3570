"""Demand on a regular grid. A step without a measurement is NaN: never zero, never filled."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

STEP_SECONDS = 60
FINE_DAYS = 3
COARSE_STEP_SECONDS = 600  # before the last FINE_DAYS: days-old minutes do not pay for their samples

LEAST_LEVEL = 1e-9  # replicas: a request of one second in thirty years

MOST_BITS = 500  # by which the weights of one block may differ in `smooth`: far inside a double's range


@dataclass(frozen=True, kw_only=True, eq=False)
class Series:
    """`values[i]` is the mean over the STEP_SECONDS that end at `start + i * STEP_SECONDS` (Unix seconds)."""

    start: int
    values: FloatArray

    def __len__(self) -> int:
        return len(self.values)

    @property
    def end(self) -> int:
        """Time of the newest step, measured or missing (Unix seconds)."""
        return self.start + (len(self.values) - 1) * STEP_SECONDS

    def times(self, ahead: int = 0) -> npt.NDArray[np.int64]:
        """Times of all steps and of `ahead` more, in Unix seconds."""
        return self.start + STEP_SECONDS * np.arange(len(self.values) + ahead, dtype=np.int64)

    def before(self, count: int) -> "Series":
        """The first `count` steps."""
        return Series(start=self.start, values=self.values[:count])


def floor_step(time: float, step_seconds: int = STEP_SECONDS) -> int:
    """The newest grid time that is not after `time`."""
    return int(time // step_seconds) * step_seconds


def on_grid(
    start: int, end: int, times: Iterable[float], values: Iterable[float], step_seconds: int = STEP_SECONDS
) -> FloatArray:
    """Samples of means over `step_seconds` that end at `times`, on the STEP_SECONDS grid from `start` to `end`, both included.

    A coarse sample fills all the steps that it is the mean of. Samples off the grid go to the step that holds them, of
    two for the same step the later in order counts, and what is outside, negative, infinite or not a number is missing.
    """
    grid = np.full(max(0, (end - start) // STEP_SECONDS + 1), np.nan)
    width = step_seconds // STEP_SECONDS
    for time, value in zip(times, values, strict=True):
        last = -int(-(time - start) // STEP_SECONDS)
        if np.isfinite(value) and value >= 0 and 0 <= last < len(grid) + width - 1:
            grid[max(0, last - width + 1) : last + 1] = value
    return grid


def carry_forward(values: FloatArray) -> FloatArray:
    """Each missing value replaced by the newest one before it; NaN where there is none yet."""
    seen = np.where(np.isfinite(values), np.arange(len(values)), -1)
    newest = np.maximum.accumulate(seen) if len(values) else seen
    return np.where(newest >= 0, values[np.maximum(newest, 0)], np.nan)


def fill_from_neighbours(values: FloatArray) -> FloatArray:
    """Missing values replaced by the newest before, else by the first after; all NaN when there is none."""
    forward = carry_forward(values)
    return np.where(np.isfinite(forward), forward, carry_forward(values[::-1])[::-1])


def smooth(values: FloatArray, alpha: float) -> FloatArray:
    """Exponentially weighted mean that skips NaN: s[t] = s[t-1] + alpha * (v[t] - s[t-1]), begun at the first value."""
    measured = np.isfinite(values)
    out = np.full(len(values), np.nan)
    out[measured] = _smooth_finite(values[measured], alpha) if alpha < 1 else values[measured]
    return carry_forward(out)


def _smooth_finite(values: FloatArray, alpha: float) -> FloatArray:
    """The recursion as sums over blocks: s[k] = keep^(k+1) * (s[-1] + sum alpha * v[i] / keep^(i+1)), i <= k."""
    keep = 1.0 - alpha
    block = max(1, min(512, int(MOST_BITS / -np.log2(keep))))
    powers = keep ** np.arange(1, block + 1)
    out = np.empty(len(values))
    state = values[0] if len(values) else 0.0
    for begin in range(0, len(values), block):
        part = values[begin : begin + block]
        weights = powers[: len(part)]
        out[begin : begin + block] = weights * (state + np.cumsum(alpha * part / weights))
        state = out[begin + len(part) - 1]
    return out


def alpha_of_half_life(seconds: float) -> float:
    """The weight of one step so that half of the memory is gone after `seconds`; 1 (no memory) for 0."""
    return 1.0 if seconds <= 0 else float(1.0 - 0.5 ** (STEP_SECONDS / seconds))


def typical_level(values: FloatArray) -> float:
    """Mean of the positive values: the unit in which a series is "about one". 1 when nothing was ever asked for.

    Never below LEAST_LEVEL, so that no share of it vanishes: scales are divided by.
    """
    positive = values[np.isfinite(values) & (values > 0)]
    return max(LEAST_LEVEL, float(positive.mean())) if len(positive) else 1.0
