"""The decision while demand is measured: reactive and predictive answers, then pace and the way down."""

from dataclasses import dataclass, replace
from datetime import datetime

from warmfront_forecaster.planning.outcome import Outcome, bounded, held_replicas
from warmfront_forecaster.planning.pace import fewest_allowed, most_allowed
from warmfront_forecaster.planning.predictive import Judgement, Prediction, payback, predict
from warmfront_forecaster.planning.reactive import Reactive, react
from warmfront_forecaster.planning.reasons import Reason
from warmfront_forecaster.planning.scale_down import Limits, descend, most_wanted, watched, window
from warmfront_forecaster.planning.types import Binding, Candidates, DemandReading, Observation, ScalingPolicy


@dataclass(frozen=True, kw_only=True)
class _Wants:
    """The answers, before pace and conditions. `acted` is the prediction where it may be acted on, else 0."""

    reactive: Reactive
    prediction: Prediction | None
    acted: int
    want: int


def follow(observation: Observation, reading: DemandReading, judgement: Judgement, lead_seconds: float, now: datetime) -> Outcome:
    """`n_want = max(n_react, n_pred, minReplicas)`, held within the bounds, the pace and the conditions of going down."""
    policy = observation.policy
    wants = _wants(observation, reading, judgement, lead_seconds)
    consolidated = _wants(_without_starting(observation), reading, judgement, lead_seconds).want
    limits = _limits(observation, judgement, wants.want, consolidated, now)
    pace_up = most_allowed(observation.last_scale_up, limits.held, now)
    reached, stopped = _reach(observation, limits, pace_up)
    binding, reason = _explain(wants, reached, stopped, policy)
    return Outcome(
        desired=bounded(reached, policy),
        binding=binding,
        reason=reason,
        candidates=_candidates(wants, limits, pace_up, policy),
        limited=wants.want > policy.max_replicas or stopped is Reason.SCALE_UP_PACE,
    )


def _candidates(wants: _Wants, limits: Limits, pace_up: int, policy: ScalingPolicy) -> Candidates:
    reactive, prediction = wants.reactive, wants.prediction
    return Candidates(
        demand=reactive.demand,
        backlog=reactive.backlog,
        reactive=reactive.replicas,
        predictive=prediction.capped if prediction else None,
        predictive_uncapped=prediction.uncapped if prediction else None,
        minimum=policy.min_replicas,
        maximum=policy.max_replicas,
        want=wants.want,
        held=limits.held,
        down_window=limits.down_window,
        consolidated=limits.consolidated,
        payback=limits.payback,
        pace_up=pace_up,
        pace_down=limits.pace,
    )


def _wants(observation: Observation, reading: DemandReading, judgement: Judgement, lead_seconds: float) -> _Wants:
    policy, capacity = observation.policy, observation.capacity
    reactive = react(reading, capacity, observation.replicas, lead_seconds)
    outlook = judgement.outlook
    prediction = predict(outlook, reactive.replicas, policy.max_step_percent, capacity) if outlook else None
    acted = prediction.capped if prediction and judgement.acting else 0
    return _Wants(reactive=reactive, prediction=prediction, acted=acted, want=max(reactive.replicas, acted, policy.min_replicas))


def _without_starting(observation: Observation) -> Observation:
    return replace(observation, replicas=replace(observation.replicas, starting=0))


def _limits(observation: Observation, judgement: Judgement, want: int, consolidated: int, now: datetime) -> Limits:
    held, outlook = held_replicas(observation), judgement.acting
    length, past = window(trusted=outlook is not None), observation.past_wants
    return Limits(
        want=bounded(want, observation.policy),
        held=held,
        down_window=most_wanted(past, now, length, want),
        window_watched=watched(past, now, length, observation.tick_seconds),
        consolidated=consolidated,
        payback=payback(outlook, observation.capacity) if outlook else None,
        pace=fewest_allowed(observation.last_scale_up, held, now),
    )


def _reach(observation: Observation, limits: Limits, pace_up: int) -> tuple[int, Reason | None]:
    """Replicas that may be had now, and what stopped them short of the want."""
    if limits.want < limits.held:
        descent = descend(limits, observation.replicas)
        return descent.replicas, descent.reason
    most = max(pace_up, limits.held, observation.policy.min_replicas)
    return (most, Reason.SCALE_UP_PACE) if limits.want > most else (limits.want, None)


def _winner(wants: _Wants, policy: ScalingPolicy) -> tuple[Binding, Reason]:
    """Which input made the want; of equal ones the simplest."""
    if wants.want > policy.max_replicas:
        return Binding.MAXIMUM, Reason.MAXIMUM_REPLICAS
    if wants.acted > max(wants.reactive.replicas, policy.min_replicas):
        return Binding.PREDICTIVE, Reason.FORECAST_PEAK
    if policy.min_replicas > wants.reactive.replicas:
        return Binding.MINIMUM, Reason.MINIMUM_REPLICAS
    waiting = wants.reactive.replicas > wants.reactive.for_demand_alone
    return Binding.REACTIVE, Reason.BACKLOG_WAITING if waiting else Reason.DEMAND_MEASURED


def _explain(wants: _Wants, reached: int, stopped: Reason | None, policy: ScalingPolicy) -> tuple[Binding, Reason]:
    """What to name: the want's own input, or what stopped the replicas before they got there."""
    binding, reason = _winner(wants, policy)
    if stopped is Reason.SCALE_UP_PACE:
        return binding, stopped
    if stopped is None:
        return binding, reason
    if reached > policy.max_replicas:
        return Binding.MAXIMUM, Reason.MAXIMUM_REPLICAS
    return Binding.HOLD, stopped
