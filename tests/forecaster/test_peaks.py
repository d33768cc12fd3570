"""Windows in which more replicas will be needed."""

import numpy as np
import pytest

from warmfront_forecaster.domain.peaks import MOST_PEAKS, Peak, peaks


def found(uppers: list[float], replicas: int = 1, target: float = 0.75) -> list[Peak]:
    begins = 1_000.0 + 600.0 * np.arange(len(uppers))
    return peaks(begins, np.array(uppers), 600.0, target, replicas)


def test_a_run_above_what_is_there_is_one_peak_with_its_largest_need():
    assert found([0.1, 1.0, 2.0, 0.1]) == [Peak(start=1_600.0, end=2_800.0, replicas=3)]


def test_what_the_replicas_carry_is_no_peak():
    assert found([2.1, 2.1], replicas=3, target=0.7) == []  # 3 x 0.7, exactly


def test_two_runs_are_two_peaks_and_one_at_the_edge_ends_there():
    assert [(peak.start, peak.end) for peak in found([1.0, 0.0, 1.0])] == [(1_000.0, 1_600.0), (2_200.0, 2_800.0)]


@pytest.mark.parametrize("uppers", [[], [0.0] * 5])
def test_rest_has_no_peaks(uppers: list[float]):
    assert found(uppers, replicas=0) == []


def test_a_flickering_forecast_gives_a_bounded_list():
    assert len(found([1.0, 0.0] * 70)) == MOST_PEAKS
