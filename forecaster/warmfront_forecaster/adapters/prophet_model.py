"""Prophet, set up for demand. The only importer of prophet."""

import logging
import warnings
from dataclasses import dataclass
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
from prophet import Prophet

from warmfront_forecaster.domain.calendar import DAY_SECONDS, utc_offset_seconds
from warmfront_forecaster.domain.curve import LogCurve
from warmfront_forecaster.domain.models import IntArray
from warmfront_forecaster.domain.series import COARSE_STEP_SECONDS, STEP_SECONDS, FloatArray, Series, typical_level
from warmfront_forecaster.errors import ModelError

DAILY_ORDER = 12
WEEKLY_ORDER = 40  # enough that each weekday has a shape of its own; a low order only shifts the same day up and down
LEAST_DAYS_DAILY = 2
LEAST_DAYS_WEEKLY = 14
PAST_SECONDS = DAY_SECONDS // 2  # of the curve, before the fit: the level is measured on it
AHEAD_SECONDS = 3 * DAY_SECONDS  # a fit is used for a day, may have to do for another, and peaks are looked for a day ahead

# Two lines per fit about Stan's chains help nobody; what goes wrong comes as an exception.
logging.getLogger("cmdstanpy").disabled = True


@dataclass(frozen=True, kw_only=True)
class ProphetModel:
    """log(1 + d/unit) on the service's own wall clock: flat growth, a daily and (from two weeks on) a rich weekly term."""

    zone: ZoneInfo
    name: str = "Prophet"
    refit_seconds: int | None = DAY_SECONDS

    def fit(self, series: Series) -> LogCurve:
        """Fit on means over ten minutes, and leave the curve for the days ahead.

        Raises:
            ModelError: less than two days of measurements, or Stan failed.
        """
        times, logs, unit = _coarse_logs(series)
        days = len(times) * COARSE_STEP_SECONDS / DAY_SECONDS
        if days < LEAST_DAYS_DAILY:
            raise ModelError(f"Prophet needs two days of measurements, there are {days:.1f}")
        model = _prophet(weekly=days >= LEAST_DAYS_WEEKLY)
        wanted = np.arange(series.end - PAST_SECONDS, series.end + AHEAD_SECONDS, COARSE_STEP_SECONDS, dtype=np.int64)
        try:
            with warnings.catch_warnings(action="ignore"):  # of Prophet's about pandas; nobody here can mend them
                model.fit(pd.DataFrame({"ds": self._wall(times), "y": logs}))
                curve = model.predict(pd.DataFrame({"ds": self._wall(wanted)}))["yhat"].to_numpy(dtype=float)
        except Exception as error:
            raise ModelError(f"Prophet could not be fitted: {error}", retryable=True) from error
        return LogCurve(start=int(wanted[0]), step_seconds=COARSE_STEP_SECONDS, values=curve, unit=unit)

    def _wall(self, times: IntArray) -> pd.DatetimeIndex:
        """The time on the wall: people come at nine, whatever UTC says."""
        return pd.DatetimeIndex(pd.to_datetime(times + utc_offset_seconds(times, self.zone), unit="s"))


def _prophet(*, weekly: bool) -> Prophet:
    model = Prophet(
        growth="flat",
        daily_seasonality=False,
        weekly_seasonality=False,
        yearly_seasonality=False,
        uncertainty_samples=0,  # the quantile comes from conformal calibration
    )
    model.add_seasonality("daily", period=1, fourier_order=DAILY_ORDER)
    if weekly:
        model.add_seasonality("weekly", period=7, fourier_order=WEEKLY_ORDER)
    return model


def _coarse_logs(series: Series) -> tuple[IntArray, FloatArray, float]:
    """Middles of ten-minute slots that have a measurement, log(1 + mean/unit) of each, and the unit."""
    width = COARSE_STEP_SECONDS // STEP_SECONDS
    whole = len(series) // width * width
    newest = slice(len(series) - whole, len(series))
    blocks = np.reshape(series.values[newest], (-1, width))  # noqa: PD011 - an array, not a frame
    measured = np.isfinite(blocks)
    some = measured.any(axis=1)
    means = np.nansum(blocks[some], axis=1) / measured[some].sum(axis=1)
    ends = series.times()[newest].reshape(-1, width)[:, -1]
    unit = typical_level(series.values)
    return ends[some] - COARSE_STEP_SECONDS // 2, np.log1p(means / unit), unit
