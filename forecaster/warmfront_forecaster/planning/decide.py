"""The decision: pure, so that live, replay and tests run the same code."""

from dataclasses import replace
from datetime import datetime

from warmfront_forecaster.planning.counterfactual import without_forecast
from warmfront_forecaster.planning.demand import unknown_reason
from warmfront_forecaster.planning.hold import hold
from warmfront_forecaster.planning.leadtime import lead_time_seconds
from warmfront_forecaster.planning.measured import follow
from warmfront_forecaster.planning.messages import Facts, forecast_sentence, sentence
from warmfront_forecaster.planning.outcome import Outcome
from warmfront_forecaster.planning.predictive import Judgement, judge
from warmfront_forecaster.planning.reasons import Reason
from warmfront_forecaster.planning.types import Binding, Candidates, Decision, Mode, Observation, PredictiveMode


def decide(observation: Observation, now: datetime) -> Decision:
    """How many replicas, which input decided them, and every number that took part.

    Equal observations give equal decisions; nothing is read but the arguments. No value in the observation raises:
    one that cannot be believed is disqualified and named in the result.

    Args:
        observation: all that is known; `planning.history` keeps its past between ticks.
        now: the time of this tick, with a time zone if the past has one.

    Returns:
        The decision. `act` False: nothing is to be written. In Active and Advisory `desired` is within the bounds.
    """
    lead_seconds = lead_time_seconds(observation.policy.lead_time, observation.cold_start_seconds)
    judgement = judge(observation.forecast, observation.policy.predictive)
    planned = _with_counterfactual(_plan(observation, judgement, lead_seconds, now), observation, lead_seconds, now)
    outcome, act = _in_mode(planned, observation)
    facts = Facts(observation=observation, outcome=outcome, judgement=judgement, lead_time_seconds=lead_seconds)
    return Decision(
        time=now,
        current=observation.replicas.wanted,
        desired=outcome.desired,
        binding=outcome.binding,
        reason=outcome.reason,
        message=sentence(facts),
        lead_time_seconds=lead_seconds,
        candidates=outcome.candidates,
        limited=outcome.limited,
        act=act,
        forecast_reason=judgement.use,
        forecast_message=forecast_sentence(judgement.use, observation.forecast),
    )


def _plan(observation: Observation, judgement: Judgement, lead_seconds: float, now: datetime) -> Outcome:
    why = unknown_reason(observation.demand, observation.capacity)
    if observation.demand is None or why is not None:
        return hold(observation, judgement, why or Reason.DEMAND_UNKNOWN, now)
    return follow(observation, observation.demand, judgement, lead_seconds, now)


def _with_counterfactual(outcome: Outcome, observation: Observation, lead_seconds: float, now: datetime) -> Outcome:
    """Note beside the decision the one that predictive.mode Off would have made; unless Active they are one."""
    other = outcome
    if observation.policy.predictive is PredictiveMode.ACTIVE:
        off = without_forecast(observation)
        other = _plan(off, judge(off.forecast, off.policy.predictive), lead_seconds, now)
    noted: Candidates = replace(outcome.candidates, without_forecast=other.desired, want_without_forecast=other.candidates.want)
    return replace(outcome, candidates=noted)


def _in_mode(outcome: Outcome, observation: Observation) -> tuple[Outcome, bool]:
    """What becomes of the plan in the user's mode, and whether it is to be written."""
    policy = observation.policy
    if policy.mode is not Mode.PAUSED:
        return outcome, policy.mode is Mode.ACTIVE
    wish = policy.paused_replicas
    desired = observation.replicas.wanted if wish is None else wish
    reason = Reason.PAUSED_HOLD if wish is None else Reason.PAUSED_REPLICAS
    candidates = replace(outcome.candidates, without_forecast=desired)
    paused = replace(outcome, desired=desired, binding=Binding.PAUSED, reason=reason, candidates=candidates, limited=False)
    return paused, wish is not None
