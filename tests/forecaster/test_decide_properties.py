"""What holds of `decide` whatever it is told. One request is one second of a whole replica, so arrivals are demand."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from warmfront_forecaster.planning import (
    Capacity,
    DemandReading,
    Forecast,
    ForecastState,
    Mode,
    Observation,
    PastWant,
    PredictiveMode,
    ReplicaCounts,
    ScalingPolicy,
    decide,
)

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
AMOUNT = st.floats(0, 30, allow_subnormal=False)
ANY_NUMBER = st.one_of(AMOUNT, st.floats(allow_nan=True, allow_infinity=True))
COUNT = st.integers(0, 12)


def readings(number: st.SearchStrategy[float], tokens: st.SearchStrategy[float | None]) -> st.SearchStrategy[DemandReading]:
    return st.builds(
        DemandReading, arrivals_per_second=number, prompt_tokens=tokens, output_tokens=tokens, backlog_requests=number
    )


def forecasts(number: st.SearchStrategy[float | None]) -> st.SearchStrategy[Forecast]:
    return st.builds(Forecast, state=st.sampled_from(ForecastState), upper=number, median=number, max_demand_seen=number)


@st.composite
def past(draw: st.DrawFn) -> tuple[PastWant, ...]:
    """Ticks of the last minutes, oldest first, without a gap or with."""
    step = draw(st.sampled_from([15, 40, 90]))
    wants = draw(st.lists(COUNT, max_size=24))
    return tuple(PastWant(time=NOW - timedelta(seconds=step * (len(wants) - i)), replicas=n) for i, n in enumerate(wants))


@st.composite
def policies(draw: st.DrawFn) -> ScalingPolicy:
    low = draw(st.integers(1, 6))
    high = draw(st.integers(low, 14))
    return ScalingPolicy(
        mode=draw(st.sampled_from([Mode.ACTIVE, Mode.ADVISORY])),
        predictive=draw(st.sampled_from(PredictiveMode)),
        min_replicas=low,
        max_replicas=high,
        max_step_percent=draw(st.integers(1, 300)),
        fallback_replicas=draw(st.integers(0, high)),
    )


def observations(
    demand: st.SearchStrategy[DemandReading | None], forecast: st.SearchStrategy[Forecast | None]
) -> st.SearchStrategy[Observation]:
    return st.builds(
        Observation,
        policy=policies(),
        capacity=st.just(Capacity(prefill_tokens_per_second=1000, decode_tokens_per_second=1000)),
        replicas=st.builds(ReplicaCounts, wanted=COUNT, ready=COUNT, starting=COUNT, unschedulable=COUNT, rolling=st.booleans()),
        demand=demand,
        failed_readings=st.integers(0, 6),
        forecast=forecast,
        cold_start_seconds=st.lists(ANY_NUMBER, max_size=4).map(tuple),
        past_wants=past(),
        last_desired=st.none() | COUNT,
        last_scale_up=past(),
    )


MEASURED = readings(AMOUNT, st.just(500.0))
SOUND = observations(MEASURED, st.none() | forecasts(AMOUNT))
UNKNOWN = observations(st.none() | readings(ANY_NUMBER, st.none()), st.none() | forecasts(ANY_NUMBER))
ANYTHING = observations(st.none() | readings(ANY_NUMBER, st.none() | ANY_NUMBER), st.none() | forecasts(st.none() | ANY_NUMBER))


@given(ANYTHING)
def test_no_value_raises_and_the_bounds_hold(observation: Observation) -> None:
    decision = decide(observation, NOW)
    assert observation.policy.min_replicas <= decision.desired <= observation.policy.max_replicas
    assert decision.candidates.without_forecast is not None
    assert observation.policy.min_replicas <= decision.candidates.without_forecast <= observation.policy.max_replicas
    assert decision.message
    assert len(decision.message) <= 300


@given(ANYTHING)
def test_equal_inputs_give_equal_decisions(observation: Observation) -> None:
    assert decide(observation, NOW) == decide(replace(observation), NOW)


@given(SOUND, AMOUNT, AMOUNT)
def test_more_demand_never_gets_fewer_replicas(observation: Observation, arrivals: float, backlog: float) -> None:
    assert observation.demand is not None
    more = replace(
        observation.demand,
        arrivals_per_second=observation.demand.arrivals_per_second + arrivals,
        backlog_requests=observation.demand.backlog_requests + backlog,
    )
    assert decide(replace(observation, demand=more), NOW).desired >= decide(observation, NOW).desired


@given(SOUND, AMOUNT)
def test_a_higher_forecast_never_gets_fewer_replicas(observation: Observation, more: float) -> None:
    low = Forecast(state=ForecastState.TRUSTED, upper=1.0, median=1.0, max_demand_seen=20.0)
    high = replace(low, upper=1.0 + more, median=1.0 + more)
    active = replace(observation, policy=replace(observation.policy, predictive=PredictiveMode.ACTIVE))
    assert decide(replace(active, forecast=high), NOW).desired >= decide(replace(active, forecast=low), NOW).desired


@given(SOUND)
def test_shadow_decides_as_off_does(observation: Observation) -> None:
    off, shadow = (
        decide(replace(observation, policy=replace(observation.policy, predictive=mode)), NOW)
        for mode in (PredictiveMode.OFF, PredictiveMode.SHADOW)
    )
    assert (shadow.desired, shadow.binding, shadow.reason) == (off.desired, off.binding, off.reason)
    assert shadow.candidates.without_forecast == shadow.desired


@given(SOUND)
def test_without_forecast_is_what_off_decides_on_the_same_observation(observation: Observation) -> None:
    off = decide(replace(observation, policy=replace(observation.policy, predictive=PredictiveMode.OFF)), NOW)
    assert decide(observation, NOW).candidates.without_forecast == off.desired


@given(UNKNOWN)
def test_an_outage_removes_no_replica(observation: Observation) -> None:
    """Zero arrivals with nothing waiting is a measurement; all else in these readings is unknown."""
    reading = observation.demand
    if reading is not None and reading.arrivals_per_second == reading.backlog_requests == 0:
        return
    held = observation.replicas.wanted if observation.policy.mode is Mode.ACTIVE else observation.last_desired or 0
    assert decide(observation, NOW).desired >= min(held, observation.policy.max_replicas)


@given(SOUND)
def test_what_was_removed_is_not_ordered_again_for_the_same_demand(observation: Observation) -> None:
    """Two pods at 30 % are one at 60 % (dynamo#9294): a step down that asks for the step up goes on for ever."""
    active = replace(observation, policy=replace(observation.policy, mode=Mode.ACTIVE), last_desired=None)
    down = decide(active, NOW).desired
    if down >= active.replicas.wanted:
        return
    fleet = replace(active.replicas, wanted=down, ready=min(active.replicas.ready, down), starting=0, unschedulable=0)
    assert decide(replace(active, replicas=fleet, last_desired=down), NOW + timedelta(seconds=15)).desired <= down


@given(SOUND)
def test_a_rollout_removes_no_warm_pod(observation: Observation) -> None:
    rolling = replace(
        observation,
        policy=replace(observation.policy, mode=Mode.ACTIVE),
        replicas=replace(observation.replicas, rolling=True),
    )
    warm = min(rolling.replicas.ready, rolling.replicas.wanted)
    assert decide(rolling, NOW).desired >= min(warm, rolling.policy.max_replicas)
