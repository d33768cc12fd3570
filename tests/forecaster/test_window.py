"""The window that a decision looks at."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warmfront_forecaster.domain.predictor import LeadTime
from warmfront_forecaster.domain.window import MAX_STEPS_AHEAD, Window, window_maxima

NAN = float("nan")


@given(st.lists(st.one_of(st.just(NAN), st.floats(0, 1e9)), max_size=60), st.integers(1, 8), st.integers(0, 8))
def test_the_maximum_is_over_exactly_the_windows_steps_or_unknown(values: list[float], first: int, more: int):
    window = Window(first=first, last=first + more)
    found = window_maxima(np.array(values, dtype=float), window)
    for t in range(len(values)):
        seen = values[t + window.first : t + window.last + 1]
        whole = len(seen) == window.width and not any(np.isnan(seen))
        assert (found[t] == max(seen)) if whole else np.isnan(found[t])


@pytest.mark.parametrize(
    ("age", "lead", "first", "last"),
    [
        (0, 150, 3, 6),  # from 150 s to 315 s: the minutes that end at 180 .. 360 s
        (60, 150, 4, 7),
        (0, 60, 1, 3),
        (0, 1, 1, 1),
        (-30, 60, 1, 2),  # the operator's clock is behind ours
        (0, 1e9, MAX_STEPS_AHEAD, MAX_STEPS_AHEAD),
    ],
)
def test_the_upper_window_is_from_one_to_two_start_ups_ahead(age: float, lead: float, first: int, last: int):
    assert LeadTime(seconds=lead, tick_seconds=15).upper_window(age) == Window(first=first, last=last)


def test_the_median_window_is_the_start_up_itself():
    assert LeadTime(seconds=150, tick_seconds=15).median_window(0) == Window(first=1, last=3)
