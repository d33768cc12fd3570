"""Arrivals have the rate and the burstiness that they are asked for, at the service and behind random routing."""

import numpy as np
import pytest

from warmfront_forecaster.capacity.arrivals import arrivals


@pytest.mark.parametrize(
    ("dispersion", "islands", "expected"),
    [
        pytest.param(1.0, 1, 1.0, id="Poisson"),
        pytest.param(4.0, 1, 4.0, id="bursty"),
        pytest.param(0.25, 1, 0.25, id="more regular than Poisson"),
        pytest.param(1.0, 8, 1.0, id="a share of Poisson is Poisson"),
        pytest.param(5.0, 4, 2.0, id="one of four sees a quarter of the burstiness: 1 + (5 - 1) / 4"),
        pytest.param(9.0, 16, 1.5, id="one of sixteen: 1 + (9 - 1) / 16"),
    ],
)
def test_gaps_have_mean_one_and_the_dispersion_asked_for(dispersion: float, islands: int, expected: float) -> None:
    times = arrivals(np.random.default_rng(3), count=400_000, dispersion=dispersion, islands=islands)
    gaps = np.diff(times)
    assert gaps.min() >= 0
    assert gaps.mean() == pytest.approx(1.0, rel=0.02)
    assert gaps.var() / gaps.mean() ** 2 == pytest.approx(expected, rel=0.04)


def test_one_island_is_what_random_routing_leaves_of_the_whole() -> None:
    """Counts in windows at the scale of an objective, of arrivals that are thinned one by one and of those made at once."""
    rng = np.random.default_rng(5)
    whole = arrivals(rng, count=1_200_000, dispersion=6.0)
    thinned = whole[rng.random(len(whole)) < 1 / 4] / 4
    made = arrivals(rng, count=len(thinned), dispersion=6.0, islands=4)
    for window in (0.25, 1.0, 8.0):
        counts = [np.bincount((times / window).astype(int)) for times in (thinned, made)]
        spreads = [count.var() / count.mean() for count in counts]
        assert spreads[0] == pytest.approx(spreads[1], rel=0.05)


@pytest.mark.parametrize(
    ("changes", "named"), [({"count": 0}, "count"), ({"islands": 0}, "islands"), ({"dispersion": 0.0}, "dispersion")]
)
def test_what_makes_no_sense_is_refused_by_name(changes: dict[str, float], named: str) -> None:
    values = {"count": 10, "dispersion": 1.0, "islands": 1, **changes}
    with pytest.raises(ValueError, match=named):
        arrivals(np.random.default_rng(1), **values)  # type: ignore[arg-type]
