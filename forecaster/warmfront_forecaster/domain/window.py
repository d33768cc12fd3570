"""The window that a decision looks at: the maximum of demand between two times ahead."""

import math
from dataclasses import dataclass

import numpy as np

from warmfront_forecaster.domain.series import STEP_SECONDS, FloatArray

MAX_STEPS_AHEAD = 20 * 3_600 // STEP_SECONDS  # below 23 h, the shortest "same time yesterday": no window sees its own answer


@dataclass(frozen=True, kw_only=True)
class Window:
    """Steps ahead of the newest measured one, both ends included, 1 <= first <= last."""

    first: int
    last: int

    @classmethod
    def between(cls, from_seconds: float, to_seconds: float) -> "Window":
        """The steps whose means hold the moments from `from_seconds` to `to_seconds` ahead."""
        first = min(max(1, math.ceil(from_seconds / STEP_SECONDS)), MAX_STEPS_AHEAD)
        return cls(first=first, last=min(max(first, math.ceil(to_seconds / STEP_SECONDS)), MAX_STEPS_AHEAD))

    @property
    def width(self) -> int:
        """Number of steps."""
        return self.last - self.first + 1


def window_maxima(values: FloatArray, window: Window) -> FloatArray:
    """[t] = max(values[t+first .. t+last]), as long as `values`.

    NaN where a step of the window is missing or not there yet: the maximum of the rest may be too low.
    """
    out = np.full(len(values), np.nan)
    count = len(values) - window.last
    if count > 0:
        views = np.lib.stride_tricks.sliding_window_view(values, window.width)
        out[:count] = views[window.first : window.first + count].max(axis=1)
    return out
