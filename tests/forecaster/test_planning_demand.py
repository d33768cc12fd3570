"""Demand, sizing and lead time: right values worked out by hand."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warmfront_forecaster.planning import Capacity, DemandReading, LeadTimePolicy, demand, lead_time_seconds, need
from warmfront_forecaster.planning.demand import unknown_reason
from warmfront_forecaster.planning.reasons import Reason
from warmfront_forecaster.planning.sizing import MOST_REPLICAS

CAPACITY = Capacity(prefill_tokens_per_second=8000, decode_tokens_per_second=400, target_utilization=0.75)


def reading(
    arrivals: float = 2.0, prompt: float | None = 1000.0, output: float | None = 150.0, backlog: float = 0.0
) -> DemandReading:
    return DemandReading(arrivals_per_second=arrivals, prompt_tokens=prompt, output_tokens=output, backlog_requests=backlog)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(reading(), 2 * (1000 / 8000 + 150 / 400), id="prefill and decode seconds of each request add up"),
        pytest.param(reading(arrivals=0.0), 0.0, id="nothing arrives: measured zero"),
        pytest.param(reading(arrivals=0.0, prompt=None, output=None), 0.0, id="zero needs no token means"),
        pytest.param(reading(prompt=0.0, output=0.0), 0.0, id="requests without tokens take nothing"),
        pytest.param(None, None, id="absent is not zero"),
        pytest.param(reading(prompt=None), None, id="requests arrive and none was served: prompt tokens unknown"),
        pytest.param(reading(output=None), None, id="requests arrive and none was served: output tokens unknown"),
        pytest.param(reading(arrivals=0.0, prompt=None, backlog=3), None, id="requests wait whose work is unknown"),
        pytest.param(reading(arrivals=math.nan), None, id="NaN arrivals"),
        pytest.param(reading(arrivals=-0.1), None, id="negative arrivals"),
        pytest.param(reading(backlog=math.inf), None, id="infinite backlog"),
        pytest.param(reading(prompt=-1.0), None, id="negative tokens"),
        pytest.param(reading(arrivals=1e300, output=1e300), None, id="a product beyond all numbers"),
    ],
)
def test_demand_in_replica_equivalents(given: DemandReading | None, expected: float | None) -> None:
    assert demand(given, CAPACITY) == (expected if expected is None else pytest.approx(expected))


@pytest.mark.parametrize(
    ("prefill", "decode", "target"), [(0, 1, 0.5), (1, -1, 0.5), (math.nan, 1, 0.5), (1, math.inf, 0.5), (1, 1, 0), (1, 1, 1.1)]
)
def test_a_capacity_that_cannot_be_divided_by_makes_demand_unknown(prefill: float, decode: float, target: float) -> None:
    broken = Capacity(prefill_tokens_per_second=prefill, decode_tokens_per_second=decode, target_utilization=target)
    assert demand(reading(), broken) is None
    assert unknown_reason(reading(), broken) is Reason.CAPACITY_INVALID


@pytest.mark.parametrize(
    ("target", "demanded", "expected"),
    [
        pytest.param(0.75, 0.0, 0, id="no demand needs no replica"),
        pytest.param(0.75, 0.001, 1, id="any demand needs one"),
        pytest.param(0.75, 0.75, 1, id="exactly the target fits"),
        pytest.param(0.75, 0.76, 2, id="a little more does not"),
        pytest.param(0.7, 2.1, 3, id="3 x 0.7 carries 2.1 although binary says 2.0999999999999996"),
        pytest.param(0.1, 0.3, 3, id="3 x 0.1 carries 0.3"),
        pytest.param(1.0, 4.0, 4, id="a target of all"),
        pytest.param(0.75, 1e300, MOST_REPLICAS, id="absurd demand stays a number"),
    ],
)
def test_need_is_the_smallest_number_that_carries_the_demand(target: float, demanded: float, expected: int) -> None:
    capacity = Capacity(prefill_tokens_per_second=1, decode_tokens_per_second=1, target_utilization=target)
    assert need(demanded, capacity) == expected


@given(demanded=st.floats(0, 4e3), target=st.floats(0.05, 1.0))
def test_need_carries_the_demand_and_one_fewer_would_not(demanded: float, target: float) -> None:
    replicas = need(demanded, Capacity(prefill_tokens_per_second=1, decode_tokens_per_second=1, target_utilization=target))
    assert replicas * target >= demanded * (1 - 1e-8)
    assert replicas == 0 or (replicas - 1) * target < demanded


@pytest.mark.parametrize(
    ("policy", "samples", "expected"),
    [
        pytest.param(LeadTimePolicy(), [], 300.0, id="nothing measured: the start value, as it stands"),
        pytest.param(LeadTimePolicy(), [90.0], 120.0, id="one sample and the margin"),
        pytest.param(LeadTimePolicy(), [80.2, 90.4], 121.0, id="of few samples the largest; rounded up to a second"),
        pytest.param(LeadTimePolicy(), [float(s) for s in range(10, 110, 10)], 120.0, id="P90 of 10 to 100 is 90"),
        pytest.param(LeadTimePolicy(percentile=50), [30.0, 10.0, 20.0], 50.0, id="the median, whatever the order"),
        pytest.param(LeadTimePolicy(margin_seconds=0), [60.0], 60.0, id="no margin"),
        pytest.param(LeadTimePolicy(measured=False, seconds=200), [90.0], 200.0, id="fixed, whatever was measured"),
        pytest.param(LeadTimePolicy(), [math.nan, 90.0, -5.0, math.inf], 120.0, id="samples that cannot be are left out"),
        pytest.param(LeadTimePolicy(seconds=250), [math.nan], 250.0, id="none that can be believed: the start value"),
        pytest.param(LeadTimePolicy(), [9e9], 7200.0, id="a pod that hung does not push the horizon to next week"),
        pytest.param(LeadTimePolicy(), [900.0] * 50 + [60.0] * 50, 90.0, id="old start-ups are forgotten"),
    ],
)
def test_lead_time(policy: LeadTimePolicy, samples: list[float], expected: float) -> None:
    assert lead_time_seconds(policy, samples) == expected
