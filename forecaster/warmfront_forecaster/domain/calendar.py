"""Wall-clock time: which moment of an earlier day had the same time on the wall."""

from datetime import UTC, datetime
from functools import lru_cache
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]

DAY_SECONDS = 86_400
_SLOT_SECONDS = 1_800  # clocks change on whole half hours of UTC, everywhere


@lru_cache(maxsize=1_024)  # a name that is not there is searched for on disk each time
def zone_known(name: str) -> bool:
    """Whether the IANA database has a zone of this name."""
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # none such, no name at all, or a folder such as "Europe"
        return False
    return True


def utc_offset_seconds(times: IntArray, zone: ZoneInfo) -> IntArray:
    """What the clock on the wall is ahead of UTC at each of `times` (Unix seconds), in seconds, same shape."""
    slots, where = np.unique(times // _SLOT_SECONDS, return_inverse=True)
    offsets = [_offset(int(slot) * _SLOT_SECONDS, zone) for slot in slots]
    return np.asarray(offsets, dtype=np.int64)[where].reshape(times.shape)


@lru_cache(maxsize=65_536)  # the same slots each minute, for all services of a timezone
def _offset(time: int, zone: ZoneInfo) -> int:
    offset = datetime.fromtimestamp(time, UTC).astimezone(zone).utcoffset()
    return int(offset.total_seconds()) if offset is not None else 0


def same_time_earlier(times: IntArray, days: int, zone: ZoneInfo) -> IntArray:
    """The moments `days` days before `times` with the same time on the wall; 23 or 25 hours back across a change.

    A wall time that the earlier day skipped or had twice gives the moment that the later day's own offset points to.
    """
    plain = times - days * DAY_SECONDS
    return plain + utc_offset_seconds(times, zone) - utc_offset_seconds(plain, zone)
