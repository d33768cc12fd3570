"""Planned arrivals."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from e2e.history.trace import RateTrace
from e2e.load.schedule import PlayPlan, Spacing, TokenRange, plan_requests

TRACE = RateTrace([0.0, 300.0], [0.0, 4.0], end_seconds=900.0)


def plan(**changes: object) -> PlayPlan:
    values: dict[str, object] = {"prompt": TokenRange(mean=100, spread=50), "output": TokenRange(mean=40, spread=20)}
    return PlayPlan(**{"start_seconds": 0.0, "end_seconds": 900.0, **values, **changes})  # type: ignore[arg-type]


def test_even_arrivals_are_one_interval_apart_and_start_half_an_interval_in() -> None:
    times = [request.at_seconds for request in plan_requests(TRACE, plan(spacing=Spacing.EVEN))]
    assert len(times) == 2400
    assert times[0] == pytest.approx(300.125)
    assert max(abs(after - before - 0.25) for before, after in itertools.pairwise(times)) < 1e-6


def test_the_play_begins_at_its_own_start_not_the_traces() -> None:
    requests = plan_requests(TRACE, plan(start_seconds=240.0, end_seconds=310.0, spacing=Spacing.EVEN))
    assert requests[0].at_seconds == pytest.approx(60.125)
    assert len(requests) == 40


def test_poisson_arrivals_have_the_rate_and_the_spread_of_a_poisson_process() -> None:
    times = [request.at_seconds for request in plan_requests(TRACE, plan(seed=7))]
    per_ten_seconds = [sum(300 + 10 * bin_ <= at < 310 + 10 * bin_ for at in times) for bin_ in range(60)]
    mean = sum(per_ten_seconds) / 60
    variance = sum((count - mean) ** 2 for count in per_ten_seconds) / 59
    assert mean == pytest.approx(40, rel=0.08)
    assert 0.6 < variance / mean < 1.6  # 1 for Poisson; four standard errors at 60 bins are 0.74


@settings(max_examples=30, deadline=None)  # a busy machine says nothing of it
@given(st.integers(0, 1000), st.floats(0, 800), st.floats(1, 100))
def test_times_ascend_inside_the_play_and_a_seed_repeats(seed: int, start: float, length: float) -> None:
    wanted = plan(seed=seed, start_seconds=start, end_seconds=start + length)
    requests = plan_requests(TRACE, wanted)
    times = [request.at_seconds for request in requests]
    assert times == sorted(times)
    assert all(0 <= at <= length for at in times)
    assert all(50 <= request.prompt_tokens <= 150 and 20 <= request.output_tokens <= 60 for request in requests)
    assert requests == plan_requests(TRACE, wanted)


def test_never_more_than_the_bound() -> None:
    assert len(plan_requests(TRACE, plan(max_requests=17))) == 17
