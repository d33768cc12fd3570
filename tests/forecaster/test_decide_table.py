"""What `decide` answers: inputs, modes, safeguards. One request is one second of a whole replica, so arrivals are demand."""

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from warmfront_forecaster.planning import (
    Binding,
    Capacity,
    DemandReading,
    Forecast,
    ForecastState,
    ForecastUse,
    LeadTimePolicy,
    Mode,
    Observation,
    PastWant,
    PredictiveMode,
    Reason,
    ReplicaCounts,
    ScalingPolicy,
    decide,
)

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
CAPACITY = Capacity(prefill_tokens_per_second=1000, decode_tokens_per_second=1000, target_utilization=0.75)
POLICY = ScalingPolicy(predictive=PredictiveMode.ACTIVE, max_replicas=8, fallback_replicas=2)
TRUSTED = Forecast(state=ForecastState.TRUSTED, upper=1.9, median=0.4, max_demand_seen=3.0)


def arriving(demand: float, backlog: float = 0.0) -> DemandReading:
    return DemandReading(arrivals_per_second=demand, prompt_tokens=500, output_tokens=500, backlog_requests=backlog)


def watching(wanted: int, seconds: int = 300) -> tuple[PastWant, ...]:
    return tuple(PastWant(time=NOW - timedelta(seconds=s), replicas=wanted) for s in range(seconds, 0, -15))


def seen(demand: float | None = 0.4, *, fleet: int = 1, policy: dict[str, Any] | None = None, **changes: Any) -> Observation:
    """One healthy service: `fleet` replicas, all Ready, watched for 300 s."""
    return replace(
        Observation(
            policy=replace(POLICY, **(policy or {})),
            capacity=CAPACITY,
            replicas=ReplicaCounts(wanted=fleet, ready=fleet),
            demand=None if demand is None else arriving(demand),
            past_wants=watching(1),
            last_desired=fleet,
        ),
        **changes,
    )


@pytest.mark.parametrize(
    ("observation", "desired", "binding", "reason"),
    [
        pytest.param(seen(), 1, Binding.REACTIVE, Reason.DEMAND_MEASURED, id="demand fits what there is"),
        pytest.param(seen(1.6), 3, Binding.REACTIVE, Reason.DEMAND_MEASURED, id="demand asks for more"),
        pytest.param(
            replace(seen(), demand=arriving(0.4, backlog=330)),
            2,
            Binding.REACTIVE,
            Reason.BACKLOG_WAITING,
            id="330 replica-seconds wait, to be cleared in 300 s: 0.4 + 1.1",
        ),
        pytest.param(seen(forecast=TRUSTED), 3, Binding.PREDICTIVE, Reason.FORECAST_PEAK, id="a trusted forecast asks for more"),
        pytest.param(
            seen(1.9, forecast=TRUSTED), 3, Binding.REACTIVE, Reason.DEMAND_MEASURED, id="of equal answers the measured one binds"
        ),
        pytest.param(
            seen(0.0, policy={"min_replicas": 2}, fleet=2),
            2,
            Binding.MINIMUM,
            Reason.MINIMUM_REPLICAS,
            id="measured zero: the minimum",
        ),
        pytest.param(
            seen(policy={"min_replicas": 7}), 7, Binding.MINIMUM, Reason.MINIMUM_REPLICAS, id="a raised minimum waits for no pace"
        ),
        pytest.param(seen(9.0, fleet=8), 8, Binding.MAXIMUM, Reason.MAXIMUM_REPLICAS, id="more than the maximum"),
        pytest.param(
            seen(fleet=8, policy={"max_replicas": 3}, past_wants=()),
            3,
            Binding.MAXIMUM,
            Reason.MAXIMUM_REPLICAS,
            id="a lowered maximum waits for no window and no pace",
        ),
        pytest.param(
            seen(5.0, policy={"max_replicas": 20}),
            5,
            Binding.REACTIVE,
            Reason.SCALE_UP_PACE,
            id="up at most four, or twice as many",
        ),
        pytest.param(seen(fleet=4), 3, Binding.HOLD, Reason.SCALE_DOWN_PACE, id="down one at a time"),
        pytest.param(seen(fleet=2), 1, Binding.REACTIVE, Reason.DEMAND_MEASURED, id="down to what demand needs"),
        pytest.param(seen(fleet=2, past_wants=watching(2)), 2, Binding.HOLD, Reason.DOWN_WINDOW, id="wanted a moment ago"),
        pytest.param(seen(fleet=2, past_wants=watching(1, 200)), 2, Binding.HOLD, Reason.HISTORY_TOO_SHORT, id="after a restart"),
        pytest.param(
            seen(fleet=2, past_wants=watching(1, 120), forecast=replace(TRUSTED, upper=0.5)),
            1,
            Binding.REACTIVE,
            Reason.DEMAND_MEASURED,
            id="a trusted forecast makes the window 120 s",
        ),
        pytest.param(
            seen(fleet=2, forecast=replace(TRUSTED, upper=0.5, median=1.0)),
            2,
            Binding.HOLD,
            Reason.FORECAST_PAYBACK,
            id="never remove what the median wants back before one could be loaded",
        ),
        pytest.param(
            seen(fleet=2, replicas=ReplicaCounts(wanted=2, ready=2, rolling=True)),
            2,
            Binding.HOLD,
            Reason.ROLLOUT_UNDER_WAY,
            id="no warm pod goes during a rollout",
        ),
        pytest.param(
            seen(fleet=1, replicas=ReplicaCounts(wanted=1, ready=1), last_desired=4, past_wants=watching(4)),
            4,
            Binding.HOLD,
            Reason.DOWN_WINDOW,
            id="a re-created Deployment is restored, whatever the pace",
        ),
        pytest.param(
            seen(fleet=2, replicas=ReplicaCounts(wanted=2, ready=0, starting=2)),
            2,
            Binding.HOLD,
            Reason.NO_READY_REPLICA,
            id="no Ready pod: a zero that nobody could have raised",
        ),
    ],
)
def test_measured_demand(observation: Observation, desired: int, binding: Binding, reason: Reason) -> None:
    decision = decide(observation, NOW)
    assert (decision.desired, decision.binding, decision.reason) == (desired, binding, reason)
    assert decision.act


@pytest.mark.parametrize(
    ("observation", "desired", "binding", "reason"),
    [
        pytest.param(seen(None, fleet=4), 4, Binding.HOLD, Reason.DEMAND_UNKNOWN, id="absent metrics hold"),
        pytest.param(
            seen(None, fleet=1, last_desired=3), 3, Binding.HOLD, Reason.DEMAND_UNKNOWN, id="what was last decided returns"
        ),
        pytest.param(seen(None, fleet=0, last_desired=None), 1, Binding.HOLD, Reason.DEMAND_UNKNOWN, id="never decided: one"),
        pytest.param(seen(None, failed_readings=2), 1, Binding.HOLD, Reason.DEMAND_UNKNOWN, id="two failures: no floor yet"),
        pytest.param(seen(None, failed_readings=3), 2, Binding.FALLBACK, Reason.FALLBACK_FLOOR, id="three failures: the floor"),
        pytest.param(
            seen(None, fleet=4, failed_readings=99),
            4,
            Binding.HOLD,
            Reason.DEMAND_UNKNOWN,
            id="the floor removes nothing above it",
        ),
        pytest.param(
            seen(None, forecast=replace(TRUSTED, median=1.6)),
            3,
            Binding.HOLD,
            Reason.FORECAST_MEDIAN,
            id="the trusted median may add",
        ),
        pytest.param(
            seen(None, forecast=replace(TRUSTED, median=1.6), policy={"predictive": PredictiveMode.SHADOW}),
            1,
            Binding.HOLD,
            Reason.DEMAND_UNKNOWN,
            id="in Shadow it may not",
        ),
        pytest.param(
            seen(None, forecast=replace(TRUSTED, median=90.0), policy={"max_replicas": 50}),
            5,
            Binding.HOLD,
            Reason.FORECAST_MEDIAN,
            id="and no further than a forecast may step",
        ),
        pytest.param(
            seen(
                None,
                fleet=5,
                forecast=replace(TRUSTED, median=5.9, max_demand_seen=6.0),
                last_scale_up=(PastWant(time=NOW, replicas=1), PastWant(time=NOW, replicas=5)),
            ),
            5,
            Binding.HOLD,
            Reason.DEMAND_UNKNOWN,
            id="nor faster than the pace allows",
        ),
        pytest.param(
            seen(None, policy={"min_replicas": 3}), 3, Binding.MINIMUM, Reason.MINIMUM_REPLICAS, id="bounds hold in an outage too"
        ),
        pytest.param(
            seen(None, fleet=9),
            8,
            Binding.MAXIMUM,
            Reason.MAXIMUM_REPLICAS,
            id="the maximum is the user's own word, outage or not",
        ),
        pytest.param(
            replace(seen(fleet=3), demand=replace(arriving(1.0), prompt_tokens=None)),
            3,
            Binding.HOLD,
            Reason.TOKENS_UNKNOWN,
            id="requests arrive and none was served",
        ),
        pytest.param(
            replace(seen(fleet=3), demand=arriving(math.nan)),
            3,
            Binding.HOLD,
            Reason.DEMAND_INVALID,
            id="a reading that is no number",
        ),
        pytest.param(
            seen(fleet=3, capacity=replace(CAPACITY, decode_tokens_per_second=0), forecast=TRUSTED),
            3,
            Binding.HOLD,
            Reason.CAPACITY_INVALID,
            id="a capacity of zero",
        ),
    ],
)
def test_unknown_demand(observation: Observation, desired: int, binding: Binding, reason: Reason) -> None:
    decision = decide(observation, NOW)
    assert (decision.desired, decision.binding, decision.reason) == (desired, binding, reason)
    assert decision.candidates.demand is None


def test_absent_holds_where_a_measured_zero_scales_down() -> None:
    assert decide(seen(None, fleet=2), NOW).desired == 2
    assert decide(seen(0.0, fleet=2), NOW).desired == 1


def test_pending_pods_are_cancelled_when_demand_falls_and_freeze_nothing() -> None:
    stuck = ReplicaCounts(wanted=5, ready=2, unschedulable=3)
    falling = seen(1.4, replicas=stuck, last_desired=5, past_wants=watching(2))
    assert decide(falling, NOW).desired == 2
    assert decide(replace(falling, demand=arriving(4.0)), NOW).desired == 6


def test_pods_that_wait_for_a_node_do_not_keep_more_from_being_asked() -> None:
    waiting = seen(2.0, replicas=ReplicaCounts(wanted=2, ready=1, unschedulable=1), last_desired=2)
    assert decide(waiting, NOW).desired == 3


def test_a_starting_pod_is_not_ordered_twice_for_one_backlog() -> None:
    """Dynamo and aibrix went 2, 4, 8, 16 while pods loaded: demand is absolute, and pods on their way count."""
    loading = seen(1.0, replicas=ReplicaCounts(wanted=2, ready=1, starting=1), last_desired=2)
    assert decide(replace(loading, demand=arriving(1.0, backlog=100)), NOW).desired == 2


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, -1.0])
@pytest.mark.parametrize("field", ["upper", "median", "max_demand_seen"])
def test_a_forecast_that_is_no_number_is_disqualified_with_its_name(field: str, bad: float) -> None:
    decision = decide(seen(fleet=2, forecast=replace(TRUSTED, **{field: bad})), NOW)
    assert (decision.desired, decision.candidates.predictive) == (1, None)
    assert decision.forecast_reason == ForecastUse.INVALID
    assert f"{field} {bad}" in decision.forecast_message


@pytest.mark.parametrize(
    ("state", "mode", "desired", "shown"),
    [
        (ForecastState.TRUSTED, PredictiveMode.ACTIVE, 3, 3),
        (ForecastState.TRUSTED, PredictiveMode.SHADOW, 1, 3),
        (ForecastState.TRUSTED, PredictiveMode.OFF, 1, None),
        (ForecastState.LEARNING, PredictiveMode.ACTIVE, 1, 3),
        (ForecastState.SHADOW, PredictiveMode.ACTIVE, 1, 3),
        (ForecastState.DEGRADED, PredictiveMode.ACTIVE, 1, 3),
        (ForecastState.UNAVAILABLE, PredictiveMode.ACTIVE, 1, None),
    ],
)
def test_only_a_trusted_forecast_in_active_acts_and_others_are_shown(
    state: ForecastState, mode: PredictiveMode, desired: int, shown: int | None
) -> None:
    decision = decide(seen(policy={"predictive": mode}, forecast=replace(TRUSTED, state=state)), NOW)
    assert (decision.desired, decision.candidates.predictive, decision.candidates.without_forecast) == (desired, shown, 1)


@pytest.mark.parametrize(
    ("policy", "desired", "act", "reason"),
    [
        pytest.param({"mode": Mode.ADVISORY}, 3, False, Reason.FORECAST_PEAK, id="Advisory decides and writes nothing"),
        pytest.param(
            {"mode": Mode.PAUSED, "paused_replicas": 5}, 5, True, Reason.PAUSED_REPLICAS, id="Paused obeys spec.replicas"
        ),
        pytest.param({"mode": Mode.PAUSED, "paused_replicas": 0}, 0, True, Reason.PAUSED_REPLICAS, id="even to none"),
        pytest.param({"mode": Mode.PAUSED}, 1, False, Reason.PAUSED_HOLD, id="Paused without a wish holds"),
    ],
)
def test_modes(policy: dict[str, Any], desired: int, reason: Reason, *, act: bool) -> None:
    decision = decide(seen(policy=policy, forecast=TRUSTED), NOW)
    assert (decision.desired, decision.act, decision.reason) == (desired, act, reason)
    assert decision.candidates.predictive == 3
    assert decision.candidates.without_forecast == (desired if policy["mode"] is Mode.PAUSED else 1)


def test_advice_follows_its_own_line_and_not_the_replicas_that_others_set() -> None:
    advised = seen(policy={"mode": Mode.ADVISORY}, fleet=6, last_desired=1)
    assert decide(advised, NOW).desired == 1


@pytest.mark.parametrize(
    ("observation", "limited"),
    [
        pytest.param(seen(9.0, fleet=8), True, id="the maximum keeps demand from what it asks"),
        pytest.param(seen(5.0, policy={"max_replicas": 20}), True, id="the pace up does too, for a minute"),
        pytest.param(seen(0.0), False, id="a minimum gives more than is asked"),
        pytest.param(seen(fleet=2, past_wants=watching(2)), False, id="holding more than is asked"),
        pytest.param(seen(), False, id="all is well"),
    ],
)
def test_limited_means_short_of_what_demand_asks(observation: Observation, *, limited: bool) -> None:
    assert decide(observation, NOW).limited is limited


@pytest.mark.parametrize(
    ("observation", "message"),
    [
        pytest.param(
            seen(forecast=TRUSTED, cold_start_seconds=(215.0,)),
            "forecast peak needs 3 replicas within 245 s (demand now 0.4, quantile upper 1.9)",
            id="forecast",
        ),
        pytest.param(seen(1.6), "demand 1.6 needs 3 replicas at 75 % of their throughput", id="demand"),
        pytest.param(
            replace(seen(), demand=arriving(0.04, backlog=330)),
            "demand 0.04 and a backlog worth 1.1 need 2 replicas at 75 % of their throughput",
            id="backlog",
        ),
        pytest.param(
            seen(9.0, fleet=8), "demand 9.0 needs 12 replicas; maxReplicas is 8: raise it, or requests will queue", id="maximum"
        ),
        pytest.param(
            seen(5.0, policy={"max_replicas": 20}),
            "demand 5.0 needs 7 replicas; going from 1 to 5 first, at most +100 % or +4 per 60 s",
            id="pace up",
        ),
        pytest.param(
            seen(fleet=4), "demand 0.4 needs 1 replica; going from 4 to 3, at most 1 or 10 % fewer per 120 s", id="pace down"
        ),
        pytest.param(
            seen(fleet=2, forecast=replace(TRUSTED, upper=0.5, median=1.0), cold_start_seconds=(90.0,)),
            "demand 0.4 needs 1 replica; holding 2, since the median forecast wants 2 back within 120 s",
            id="payback",
        ),
        pytest.param(
            seen(None, fleet=4, failed_readings=2),
            "demand could not be read (2 in a row); holding 4, nothing is removed on unknown demand",
            id="outage",
        ),
        pytest.param(
            seen(None, failed_readings=3),
            "demand could not be read 3 times in a row; going from 1 to 2, fallback.replicas is 2",
            id="fallback",
        ),
    ],
)
def test_the_message_is_one_sentence_with_the_numbers(observation: Observation, message: str) -> None:
    assert decide(observation, NOW).message == message


def test_every_candidate_is_in_the_result() -> None:
    observation = seen(1.0, fleet=2, forecast=replace(TRUSTED, upper=6.0, median=1.2), past_wants=watching(2))
    numbers = decide(replace(observation, demand=arriving(1.0, backlog=150)), NOW).candidates
    assert (numbers.demand, numbers.backlog, numbers.reactive) == (1.0, 0.5, 2)
    assert (numbers.predictive_uncapped, numbers.predictive) == (8, 6), "1.5 x 3.0 needs 6 replicas, and 2 + 4 is 6"
    assert (numbers.minimum, numbers.maximum, numbers.want, numbers.held) == (1, 8, 6, 2)
    assert (numbers.payback, numbers.down_window, numbers.consolidated) == (2, 6, 6)
    assert (numbers.pace_up, numbers.pace_down) == (6, 1)
    assert (numbers.without_forecast, numbers.want_without_forecast) == (2, 2)


def test_lead_time_is_measured_and_a_fixed_one_is_obeyed() -> None:
    assert decide(seen(cold_start_seconds=(95.0,)), NOW).lead_time_seconds == 125
    fixed = {"lead_time": LeadTimePolicy(measured=False, seconds=77)}
    assert decide(seen(policy=fixed, cold_start_seconds=(95.0,)), NOW).lead_time_seconds == 77
