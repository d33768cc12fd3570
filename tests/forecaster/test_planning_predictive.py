"""The backlog term, the caps of a forecast, and which forecast may be acted on."""

import math
from dataclasses import replace

import pytest

from warmfront_forecaster.planning import Capacity, Forecast, ForecastState, ForecastUse, PredictiveMode, ReplicaCounts
from warmfront_forecaster.planning.predictive import Outlook, judge, payback, predict
from warmfront_forecaster.planning.reactive import backlog_term

CAPACITY = Capacity(prefill_tokens_per_second=1000, decode_tokens_per_second=1000, target_utilization=0.5)
GOOD = Forecast(state=ForecastState.TRUSTED, upper=2.0, median=1.0, max_demand_seen=3.0)


def pods(ready: int, starting: int = 0, unschedulable: int = 0) -> ReplicaCounts:
    return ReplicaCounts(wanted=ready + starting + unschedulable, ready=ready, starting=starting, unschedulable=unschedulable)


@pytest.mark.parametrize(
    ("backlog_seconds", "demanded", "fleet", "lead", "expected"),
    [
        pytest.param(0, 1.0, pods(1), 120, 0.0, id="nothing waits"),
        pytest.param(240, 1.0, pods(1), 120, 2.0, id="cleared within the lead time: 240 replica-seconds in 120 s"),
        pytest.param(120, 1.0, pods(1), 10, 2.0, id="but never hurried more than in 60 s"),
        pytest.param(240, 1.0, pods(1, starting=1), 120, 1.5, id="a starting pod clears 1 x 120 / 2 before a new one could"),
        pytest.param(240, 1.5, pods(1, starting=1), 120, 1.75, id="only what it carries beyond demand: 0.5 x 60"),
        pytest.param(240, 5.0, pods(1, starting=1), 120, 2.0, id="demand takes all of it"),
        pytest.param(30, 1.0, pods(1, starting=3), 120, 0.0, id="never negative"),
        pytest.param(240, 1.0, pods(4, unschedulable=3), 120, 2.0, id="pods that no node has room for clear nothing"),
    ],
)
def test_backlog_adds_what_pods_on_their_way_will_not_clear(
    backlog_seconds: float, demanded: float, fleet: ReplicaCounts, lead: float, expected: float
) -> None:
    assert backlog_term(backlog_seconds, demanded, fleet, lead) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("upper", "most_seen", "n_react", "step", "expected"),
    [
        pytest.param(2.0, 9.0, 2, 50, (4, 4), id="within all caps"),
        pytest.param(9.0, 9.0, 1, 50, (18, 5), id="at least four may be added"),
        pytest.param(9.0, 99.0, 10, 50, (18, 15), id="half of ten may be added"),
        pytest.param(99.0, 99.0, 11, 50, (198, 17), id="half of eleven, rounded up"),
        pytest.param(9.0, 1.0, 1, 1000, (18, 3), id="1.5 times the most demand ever seen needs three"),
        pytest.param(9.0, 0.0, 5, 50, (18, 0), id="a service that never had demand gets nothing from a forecast"),
    ],
)
def test_a_forecast_is_capped(upper: float, most_seen: float, n_react: int, step: int, expected: tuple[int, int]) -> None:
    prediction = predict(Outlook(upper=upper, median=0.0, max_demand_seen=most_seen), n_react, step, CAPACITY)
    assert (prediction.uncapped, prediction.capped) == expected


def test_payback_is_bounded_by_what_history_saw() -> None:
    assert payback(Outlook(upper=0.0, median=1.2, max_demand_seen=2.0), CAPACITY) == 3
    assert payback(Outlook(upper=0.0, median=500.0, max_demand_seen=2.0), CAPACITY) == 6


@pytest.mark.parametrize(
    ("forecast", "mode", "use", "shown"),
    [
        pytest.param(GOOD, PredictiveMode.ACTIVE, ForecastUse.ACTIVE, True, id="trusted and Active"),
        pytest.param(GOOD, PredictiveMode.SHADOW, ForecastUse.SHADOW, True, id="trusted in Shadow is only shown"),
        pytest.param(GOOD, PredictiveMode.OFF, ForecastUse.OFF, False, id="Off computes nothing"),
        pytest.param(None, PredictiveMode.ACTIVE, ForecastUse.UNAVAILABLE, False, id="no answer"),
        pytest.param(
            replace(GOOD, state=ForecastState.UNAVAILABLE),
            PredictiveMode.ACTIVE,
            ForecastUse.UNAVAILABLE,
            False,
            id="says so itself",
        ),
        pytest.param(
            replace(GOOD, state=ForecastState.LEARNING), PredictiveMode.ACTIVE, ForecastUse.NOT_TRUSTED, True, id="learning"
        ),
        pytest.param(
            replace(GOOD, state=ForecastState.DEGRADED), PredictiveMode.ACTIVE, ForecastUse.NOT_TRUSTED, True, id="degraded"
        ),
        pytest.param(
            Forecast(state=ForecastState.LEARNING), PredictiveMode.ACTIVE, ForecastUse.NOT_TRUSTED, False, id="nothing known yet"
        ),
        pytest.param(replace(GOOD, upper=math.nan), PredictiveMode.ACTIVE, ForecastUse.INVALID, False, id="NaN"),
        pytest.param(replace(GOOD, median=-0.1), PredictiveMode.ACTIVE, ForecastUse.INVALID, False, id="negative"),
        pytest.param(replace(GOOD, max_demand_seen=math.inf), PredictiveMode.SHADOW, ForecastUse.INVALID, False, id="infinite"),
        pytest.param(replace(GOOD, upper=None), PredictiveMode.ACTIVE, ForecastUse.INCOMPLETE, False, id="without its quantile"),
        pytest.param(replace(GOOD, median=None), PredictiveMode.ACTIVE, ForecastUse.INCOMPLETE, False, id="without its median"),
        pytest.param(
            replace(GOOD, max_demand_seen=None),
            PredictiveMode.ACTIVE,
            ForecastUse.INCOMPLETE,
            False,
            id="without the cap's measure",
        ),
    ],
)
def test_which_forecast_may_be_acted_on(
    forecast: Forecast | None, mode: PredictiveMode, use: ForecastUse, *, shown: bool
) -> None:
    judgement = judge(forecast, mode)
    assert judgement.use is use
    assert (judgement.outlook is not None) is shown
    assert (judgement.acting is not None) is (use is ForecastUse.ACTIVE)
