"""What a forecasting model is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from warmfront_forecaster.domain.series import FloatArray, Series
from warmfront_forecaster.domain.window import Window

IntArray = npt.NDArray[np.int64]


class FittedModel(Protocol):
    """Fitted to a series. Plain data: it crosses to another process and back."""

    def paths(self, series: Series, origins: IntArray, window: Window) -> FloatArray:
        """Demand on the steps origin+first .. origin+last, from what was known at each origin.

        Args:
            series: the history; values after an origin must not be looked at for it.
            origins: indices into `series`, shape (n,).
            window: which steps ahead.

        Returns:
            Shape (n, window.width), in the unit of the series. NaN: the model has nothing to say.
        """
        ...


class ForecastModel(Protocol):
    """A way to forecast. `refit_seconds` None: nothing is estimated, one fit serves a whole backtest."""

    @property
    def name(self) -> str:
        """Stands in status and metrics."""
        ...

    @property
    def refit_seconds(self) -> int | None:
        """How old a fit may get."""
        ...

    def fit(self, series: Series) -> FittedModel:
        """Learn from a series.

        Raises:
            ModelError: the series does not do for this model, or the fit went wrong.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class Refitted:
    """Fits of one model at several times, each used from its `start` (Unix seconds, ascending) until the next one.

    So a backtest and the live forecast are one thing: an origin only ever meets a fit that was made before it.
    """

    starts: Sequence[int]
    fits: Sequence[FittedModel]

    def paths(self, series: Series, origins: IntArray, window: Window) -> FloatArray:
        """As the fit in force at each origin says; NaN before the first."""
        out = np.full((len(origins), window.width), np.nan)
        in_force = np.searchsorted(np.asarray(self.starts), series.times()[origins], side="right") - 1
        for index, fit in enumerate(self.fits):
            mine = in_force == index
            if mine.any():
                out[mine] = fit.paths(series, origins[mine], window)
        return out
