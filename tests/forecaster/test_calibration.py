"""Conformal margins: coverage is a property, whatever the errors look like."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warmfront_forecaster.domain.calibration import (
    MIN_RESIDUALS,
    Scale,
    Target,
    conformal_quantile,
    pinball,
    recent_error,
    rolling_offsets,
    scale_values,
    upper_bounds,
)
from warmfront_forecaster.domain.window import Window

ONE = Window(first=1, last=1)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=300), st.floats(0.5, 0.99))
def test_the_conformal_quantile_leaves_at_most_the_asked_share_above(residuals: list[float], quantile: float):
    found = conformal_quantile(np.sort(np.array(residuals)), quantile)
    above = sum(residual > found for residual in residuals)
    enough = math.ceil(quantile * (len(residuals) + 1)) <= len(residuals)
    assert found in residuals
    assert above <= (1 - quantile) * len(residuals) if enough else above == 0


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.5, 0.8, 0.95]), st.sampled_from(["normal", "cauchy", "lognormal"]))
def test_exchangeable_errors_are_covered_as_asked_whatever_their_shape(seed: int, quantile: float, shape: str):
    rng = np.random.default_rng(seed)
    noise = {"normal": rng.normal(size=6_000), "cauchy": rng.standard_cauchy(6_000), "lognormal": rng.lognormal(size=6_000)}[
        shape
    ]
    point = np.full(6_000, 1e6)  # far from zero, where bounds are cut
    truth = np.r_[(point + noise)[1:], np.nan]
    scored = range(2_000, 5_999)
    bound = upper_bounds(point, np.ones(6_000), Target(truth=truth, window=ONE, quantile=quantile), scored)
    assert abs((truth[2_000:5_999] <= bound).mean() - quantile) < 0.04


def test_a_margin_uses_only_windows_that_are_over():
    residuals = np.zeros(1_000)
    residuals[995:] = 100.0  # of origins whose windows, 10 steps ahead, are not over at 999
    assert rolling_offsets(residuals, 10, 0.99, range(999, 1_000)) == [0.0]


def test_too_few_residuals_give_no_margin_instead_of_a_bold_one():
    assert np.isnan(rolling_offsets(np.zeros(MIN_RESIDUALS), 2, 0.9, range(MIN_RESIDUALS - 1, MIN_RESIDUALS))).all()


def test_missing_truth_is_not_counted():
    residuals = np.where(np.arange(2_000) % 2 == 0, 1.0, np.nan)
    assert rolling_offsets(residuals, 1, 0.95, range(1_999, 2_000)) == [1.0]


@given(st.floats(0, 1e6), st.floats(0, 1e6), st.floats(1e-3, 1e3))
def test_every_scale_is_positive_and_finite_for_any_demand(point: float, recent: float, unit: float):
    for kind in Scale:
        value = scale_values(kind, np.array([point]), np.array([recent]), unit)[0]
        assert 0 < value < math.inf


def test_the_recent_error_knows_nothing_of_windows_under_way():
    point, truth = np.zeros(50), np.zeros(50)
    late = truth.copy()
    late[45:] = 9.0
    window = Window(first=2, last=5)
    assert recent_error(point, truth, window).tolist()[5:50] == recent_error(point, late, window).tolist()[5:50]


@pytest.mark.parametrize(("truth", "loss"), [(3.0, 0.9), (1.0, 0.1), (2.0, 0.0)])
def test_missing_by_one_costs_the_quantile_and_wasting_one_the_rest(truth: float, loss: float):
    assert pinball(np.array([truth]), np.array([2.0]), 0.9)[0] == pytest.approx(loss)
