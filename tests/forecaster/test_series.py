"""Demand on a grid: what was measured stays, what was not stays missing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warmfront_forecaster.domain.demand import ReplicaRates, Traffic, blank, demand, join
from warmfront_forecaster.domain.series import (
    alpha_of_half_life,
    carry_forward,
    fill_from_neighbours,
    on_grid,
    smooth,
    typical_level,
)

NAN = float("nan")
RATES = ReplicaRates(prefill_tokens_per_second=1000.0, decode_tokens_per_second=100.0)


def same(found: np.ndarray, wanted: list[float]) -> bool:
    return bool(np.allclose(found, wanted, equal_nan=True))


def traffic(arrivals: list[float], prompt: list[float], output: list[float], start: int = 0) -> Traffic:
    return Traffic(start=start, arrivals=np.array(arrivals), prompt_tokens=np.array(prompt), output_tokens=np.array(output))


def test_a_gap_stays_missing():
    assert same(on_grid(0, 240, [0, 60, 240], [1, 2, 5]), [1, 2, NAN, NAN, 5])


def test_a_coarse_sample_fills_the_steps_that_it_is_the_mean_of():
    assert same(on_grid(0, 1200, [600, 1200], [3, 4], 600), [NAN] + [3] * 10 + [4] * 10)


def test_a_coarse_sample_that_reaches_out_of_the_grid_fills_what_is_inside():
    assert same(on_grid(300, 660, [600, 1200], [3, 4], 600), [3, 3, 3, 3, 3, 3, 4])


@pytest.mark.parametrize("value", [-1.0, NAN, float("inf"), -float("inf")])
def test_what_no_rate_can_be_is_missing(value: float):
    assert same(on_grid(0, 60, [0, 60], [value, 1]), [NAN, 1])


def test_of_two_samples_for_one_step_the_later_counts():
    assert same(on_grid(0, 60, [60, 60], [1, 2]), [NAN, 2])


def test_an_empty_range_is_an_empty_grid():
    assert len(on_grid(60, 0, [], [])) == 0


def test_carrying_forward_leaves_the_beginning_missing():
    assert same(carry_forward(np.array([NAN, 1, NAN, 2, NAN])), [NAN, 1, 1, 2, 2])
    assert same(fill_from_neighbours(np.array([NAN, 1, NAN])), [1, 1, 1])
    assert same(fill_from_neighbours(np.array([NAN, NAN])), [NAN, NAN])


@given(
    st.lists(st.one_of(st.just(NAN), st.floats(0, 1e6)), max_size=1500),
    st.sampled_from([0.0, 60.0, 120.0, 4_000.0, 41_000.0]),
)
def test_smoothing_is_the_plain_recursion_that_skips_what_is_missing(values: list[float], half_life: float):
    alpha, state, wanted = alpha_of_half_life(half_life), NAN, []
    for value in values:
        if not np.isnan(value):
            state = value if np.isnan(state) else state + alpha * (value - state)
        wanted.append(state)
    assert np.allclose(smooth(np.array(values, dtype=float), alpha), wanted, equal_nan=True, rtol=1e-9, atol=1e-6)


def test_demand_is_arrivals_times_what_a_request_costs():
    # 2 requests/s x (500 / 1000 + 50 / 100) seconds of a replica each
    assert same(demand(traffic([2.0], [500.0], [50.0]), RATES).values, [2.0])


def test_the_same_history_is_half_the_replicas_when_a_replica_does_twice_as_much():
    asked = traffic([2.0, 4.0], [500.0, 500.0], [50.0, 50.0])
    twice = ReplicaRates(prefill_tokens_per_second=2000.0, decode_tokens_per_second=200.0)
    assert same(demand(asked, twice).values, list(demand(asked, RATES).values / 2))


def test_no_arrivals_are_no_demand_and_absent_ones_are_missing():
    assert same(demand(traffic([0.0, NAN, 1.0], [NAN, 1000.0, 1000.0], [NAN, 0.0, 0.0]), RATES).values, [0.0, NAN, 1.0])


def test_requests_that_nobody_served_are_as_large_as_the_ones_before():
    asked = traffic([1.0, 1.0, 1.0], [NAN, 1000.0, NAN], [NAN, 100.0, NAN])
    assert same(demand(asked, RATES).values, [2.0, 2.0, 2.0])


def test_where_nothing_was_ever_served_demand_is_missing_and_not_zero():
    assert same(demand(traffic([0.0, 1.0], [NAN, NAN], [NAN, NAN]), RATES).values, [0.0, NAN])


def test_joining_keeps_what_is_known_takes_what_is_new_and_forgets_the_oldest():
    known = traffic([1.0, 2.0, 3.0], [9.0] * 3, [9.0] * 3, start=0)
    newer = traffic([NAN, 30.0, 40.0], [8.0] * 3, [8.0] * 3, start=60)
    joined = join(known, newer, keep_seconds=120)
    assert joined.start == 60
    assert same(joined.arrivals, [2.0, 30.0, 40.0])


def test_joining_leaves_the_time_between_missing():
    joined = join(traffic([1.0], [1.0], [1.0], start=0), traffic([2.0], [1.0], [1.0], start=180), keep_seconds=86_400)
    assert same(joined.arrivals, [1.0, NAN, NAN, 2.0])
    assert len(blank(60, 0).arrivals) == 0


@pytest.mark.parametrize(
    ("values", "level"),
    [
        ([0.0, 2.0, np.nan, 4.0], 3.0),
        ([0.0, np.nan], 1.0),
        ([], 1.0),
        ([5e-324, 0.0], 1e-9),  # a unit is divided by, and so are shares of it
    ],
)
def test_the_typical_level_is_the_mean_of_what_was_asked_for(values: list[float], level: float):
    assert typical_level(np.array(values)) == level
