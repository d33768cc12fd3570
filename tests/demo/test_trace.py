"""The recorded rate and its integral."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from e2e.history.errors import TraceError
from e2e.history.trace import DAY_SECONDS, RateTrace, daily_jump

CSV = ["# origin\n", "second,rate\n", "0,0\n", "600,2\n", "1200,0.5\n"]


def trace() -> RateTrace:
    return RateTrace.from_csv(CSV, time_column="second", rate_column="rate")


@pytest.mark.parametrize(
    ("at", "rate"), [(-1, 0), (0, 0), (599.9, 0), (600, 2), (1199, 2), (1200, 0.5), (1799, 0.5), (1800, 0), (9999, 0)]
)
def test_the_rate_is_constant_inside_a_step_and_zero_outside(at: float, rate: float) -> None:
    assert trace().rate_at(at) == rate


@pytest.mark.parametrize(("until", "requests"), [(-5, 0), (600, 0), (900, 600), (1200, 1200), (1300, 1250), (5000, 1500)])
def test_requests_are_the_area_under_the_rate(until: float, requests: float) -> None:
    assert trace().requests_until(until) == pytest.approx(requests)


@given(st.lists(st.floats(0, 50), min_size=1, max_size=30), st.floats(-100, 4000), st.floats(0, 500))
def test_the_integral_never_falls_and_agrees_with_the_steps(rates: list[float], start: float, length: float) -> None:
    recorded = RateTrace([100.0 * index for index in range(len(rates))], rates, end_seconds=100.0 * len(rates))
    area = recorded.requests_until(start + length) - recorded.requests_until(start)
    by_steps = sum(step.rate * (step.end_seconds - step.start_seconds) for step in recorded.steps(start, start + length))
    assert area >= 0
    assert area == pytest.approx(by_steps, abs=1e-6)


def test_equal_neighbours_are_one_step() -> None:
    recorded = RateTrace([0.0, 10.0, 20.0], [1.0, 1.0, 3.0], end_seconds=30.0)
    assert [(step.start_seconds, step.end_seconds, step.rate) for step in recorded.steps(0, 30)] == [(0, 20, 1.0), (20, 30, 3.0)]


@pytest.mark.parametrize(
    "lines",
    [
        ["second,rate\n", "0,1\n"],
        ["second,rate\n", "0,1\n", "0,1\n"],
        ["second,rate\n", "0,1\n", "10,-1\n"],
        ["second,rate\n", "0,1\n", "10,nan\n"],
        ["second,other\n", "0,1\n", "10,1\n"],
    ],
)
def test_an_unusable_trace_is_refused(lines: list[str]) -> None:
    with pytest.raises(TraceError):
        RateTrace.from_csv(lines, time_column="second", rate_column="rate")


def test_a_daily_jump_comes_at_the_same_time_each_day() -> None:
    recorded = daily_jump(days=3, jump_seconds=3600, busy_seconds=1200, rate=4.0)
    for day in range(3):
        assert recorded.rate_at(day * DAY_SECONDS + 3599) == 0
        assert recorded.rate_at(day * DAY_SECONDS + 3600) == 4
        assert recorded.rate_at(day * DAY_SECONDS + 4800) == 0
    assert recorded.requests_until(3 * DAY_SECONDS) == pytest.approx(3 * 1200 * 4)
