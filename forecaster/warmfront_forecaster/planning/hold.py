"""The decision while demand is unknown: nothing is removed."""

from datetime import datetime

from warmfront_forecaster.planning.amounts import is_usable
from warmfront_forecaster.planning.outcome import Outcome, bounded, held_replicas
from warmfront_forecaster.planning.pace import most_allowed
from warmfront_forecaster.planning.predictive import Judgement, capped, payback
from warmfront_forecaster.planning.reasons import Reason
from warmfront_forecaster.planning.types import Binding, Candidates, Observation


def hold(observation: Observation, judgement: Judgement, why: Reason, now: datetime) -> Outcome:
    """Hold at `max(last desired, in force, median forecast, 1)`, with the fallback floor after enough failed readings.

    Absent is not zero: only `maxReplicas` may lower it. The median grows the fleet no faster than the pace allows and
    no further than a forecast may step; the fallback is a floor and waits for neither.
    """
    policy = observation.policy
    held = max(1, held_replicas(observation))
    median, pace_up = _median(observation, judgement, held), most_allowed(observation.last_scale_up, held, now)
    grown = max(held, min(median or 0, pace_up))
    fallback = policy.fallback_replicas if observation.failed_readings >= policy.fallback_threshold else None
    want = max(grown, fallback or 0, policy.min_replicas)
    binding, reason = _winner(observation, held, grown, fallback, why)
    candidates = Candidates(
        minimum=policy.min_replicas, maximum=policy.max_replicas, fallback=fallback, want=want,
        held=held, payback=median, pace_up=pace_up,
    )  # fmt: skip
    return Outcome(
        desired=bounded(want, policy), binding=binding, reason=reason, candidates=candidates, limited=want > policy.max_replicas
    )


def _median(observation: Observation, judgement: Judgement, held: int) -> int | None:
    outlook = judgement.acting
    if outlook is None or not is_usable(observation.capacity):
        return None
    wanted = payback(outlook, observation.capacity)
    return capped(wanted, outlook, held, observation.policy.max_step_percent, observation.capacity)


def _winner(observation: Observation, held: int, grown: int, fallback: int | None, why: Reason) -> tuple[Binding, Reason]:
    policy = observation.policy
    floor = max(grown, fallback or 0)
    if max(floor, policy.min_replicas) > policy.max_replicas:
        return Binding.MAXIMUM, Reason.MAXIMUM_REPLICAS
    if policy.min_replicas > floor:
        return Binding.MINIMUM, Reason.MINIMUM_REPLICAS
    if fallback is not None and fallback >= grown:
        return Binding.FALLBACK, Reason.FALLBACK_FLOOR
    return Binding.HOLD, Reason.FORECAST_MEDIAN if grown > held else why
