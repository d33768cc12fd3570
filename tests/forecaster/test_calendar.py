"""Wall-clock time across both changes of the clocks."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from warmfront_forecaster.domain.baselines import SameTimeEarlier
from warmfront_forecaster.domain.calendar import same_time_earlier, utc_offset_seconds
from warmfront_forecaster.domain.series import Series
from warmfront_forecaster.domain.window import Window

BERLIN = ZoneInfo("Europe/Berlin")


def unix(text: str, zone: ZoneInfo = BERLIN) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=zone).timestamp())


@pytest.mark.parametrize(
    ("what", "now", "earlier"),
    [
        ("an ordinary day", "2026-06-10T10:10", "2026-06-09T10:10"),
        ("the day that had 23 hours", "2026-03-29T10:10", "2026-03-28T10:10"),
        ("the day after it", "2026-03-30T10:10", "2026-03-29T10:10"),
        ("the day that had 25 hours", "2026-10-25T10:10", "2026-10-24T10:10"),
        ("the day after that", "2026-10-26T10:10", "2026-10-25T10:10"),
    ],
)
def test_same_time_yesterday_is_the_same_on_the_wall(what: str, now: str, earlier: str):
    assert same_time_earlier(np.array([unix(now)]), 1, BERLIN)[0] == unix(earlier), what


def test_an_hour_that_yesterday_skipped_gives_some_moment_of_yesterday():
    found = datetime.fromtimestamp(int(same_time_earlier(np.array([unix("2026-03-30T02:30")]), 1, BERLIN)[0]), BERLIN)
    assert (found.day, found.hour) in {(29, 1), (29, 3)}


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Asia/Kathmandu", "Australia/Lord_Howe", "Pacific/Apia"])
def test_offsets_are_the_standard_librarys_own(zone: str):
    times = np.arange(unix("2026-01-01T00:00"), unix("2026-12-31T00:00"), 7_777, dtype=np.int64)
    wanted = [datetime.fromtimestamp(int(t), UTC).astimezone(ZoneInfo(zone)).utcoffset().total_seconds() for t in times]  # type: ignore[union-attr]
    assert utc_offset_seconds(times, ZoneInfo(zone)).tolist() == wanted


@pytest.mark.parametrize("change", ["2026-03-29", "2026-10-25"])
def test_a_jump_at_ten_on_the_wall_is_foretold_at_ten_on_the_day_the_clocks_change(change: str):
    start = unix(f"{change}T00:00") - 3 * 86_400
    times = start + 60 * np.arange(4 * 1440 + 60)
    wall = (times + utc_offset_seconds(times, BERLIN)) % 86_400
    demand = np.where(wall > 10 * 3_600, 2.0, 0.0)
    origin = int(np.flatnonzero(times == unix(f"{change}T09:50"))[0])
    model = SameTimeEarlier(name="yesterday", days=1, zone=BERLIN)
    path = model.fit(Series(start=start, values=demand)).paths(
        Series(start=start, values=demand[: origin + 1]), np.array([origin]), Window(first=1, last=20)
    )[0]
    assert path.tolist() == [0.0] * 10 + [2.0] * 10
