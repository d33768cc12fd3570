"""Prophet as it is set up here, with real fits."""

from datetime import datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from warmfront_forecaster.adapters.prophet_model import ProphetModel
from warmfront_forecaster.domain.series import Series
from warmfront_forecaster.domain.window import Window
from warmfront_forecaster.errors import ModelError

DAY = 1_440
BERLIN = ZoneInfo("Europe/Berlin")
UTC = ZoneInfo("UTC")


def daily(times: np.ndarray, zone: ZoneInfo, weekend: float = 1.0) -> np.ndarray:
    """A smooth day with its peak at 15:00 on the wall; weekends at a share of it."""
    wall = [datetime.fromtimestamp(int(time), zone) for time in times]
    hours = np.array([moment.hour + moment.minute / 60 for moment in wall])
    level = np.array([weekend if moment.weekday() >= 5 else 1.0 for moment in wall])
    return level * (2.0 + np.cos((hours - 15) / 24 * 2 * np.pi))


def series(start: datetime, days: float, zone: ZoneInfo, weekend: float = 1.0) -> Series:
    begin = int(start.timestamp())
    times = begin + 60 * np.arange(1, int(days * DAY) + 1)
    return Series(start=begin + 60, values=daily(times, zone, weekend))


def test_a_day_is_learnt_from_three_through_gaps():
    known = series(datetime(2026, 6, 1, tzinfo=UTC), 3, UTC)
    known.values[DAY : DAY + 300] = np.nan
    path = ProphetModel(zone=UTC).fit(known).paths(known, np.array([len(known) - 1]), Window(first=1, last=DAY))[0]
    wanted = daily(known.end + 60 * np.arange(1, DAY + 1), UTC)
    assert np.abs(path - wanted).max() < 0.1


def test_the_hour_is_that_of_the_wall_also_after_the_clocks_changed():
    known = series(datetime(2026, 3, 26, 1, tzinfo=BERLIN), 3.2, BERLIN)  # ends after the change of the 29th
    path = ProphetModel(zone=BERLIN).fit(known).paths(known, np.array([len(known) - 1]), Window(first=1, last=600))[0]
    wanted = daily(known.end + 60 * np.arange(1, 601), BERLIN)
    assert np.abs(path - wanted).max() < 0.15


def test_with_two_weeks_each_weekday_has_its_own_shape():
    known = series(datetime(2026, 6, 1, tzinfo=UTC), 19, UTC, weekend=0.2)  # ends on Friday night
    path = ProphetModel(zone=UTC).fit(known).paths(known, np.array([len(known) - 1]), Window(first=1, last=1_200))[0]
    wanted = daily(known.end + 60 * np.arange(1, 1_201), UTC, weekend=0.2)
    assert np.abs(path - wanted)[120:].max() < 0.35  # a Saturday foretold from Friday's level; a daily term alone errs by 2


@pytest.mark.parametrize("days", [0.5, 1.9])
def test_less_than_two_days_are_refused_in_words(days: float):
    with pytest.raises(ModelError, match="two days"):
        ProphetModel(zone=UTC).fit(series(datetime(2026, 6, 1, tzinfo=UTC), days, UTC))


def test_nothing_measured_is_refused_and_a_service_at_rest_is_not():
    nothing = Series(start=60, values=np.full(3 * DAY, np.nan))
    with pytest.raises(ModelError):
        ProphetModel(zone=UTC).fit(nothing)
    rest = Series(start=60, values=np.zeros(3 * DAY))
    path = ProphetModel(zone=UTC).fit(rest).paths(rest, np.array([3 * DAY - 1]), Window(first=1, last=60))[0]
    assert path == pytest.approx(np.zeros(60), abs=1e-3)
