"""Each condition as an ordered list of pure checks: the first that has something to say decides."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from warmfront_api.inferenceservice import InferenceService
from warmfront_api.scaling import PredictiveMode, ScalingMode
from warmfront_api.status import ConditionType
from warmfront_forecaster.contract import ServiceForecast
from warmfront_forecaster.planning.demand import unknown_reason
from warmfront_forecaster.planning.types import Binding, Decision, ForecastState, ReplicaCounts
from warmfront_operator.domain.memory import Memory
from warmfront_operator.domain.observation import Seen, capacity, counts
from warmfront_operator.domain.reasons import CapacityReason, ForecastReason, ScalingReason, StateReason

Truth = Literal["True", "False", "Unknown"]


@dataclass(frozen=True, kw_only=True)
class Problem:
    """What kept the operator from shaping the children. `stalled`: only somebody's help mends it."""

    reason: StateReason
    message: str

    @property
    def stalled(self) -> bool:
        """Asking again changes nothing."""
        return self.reason is not StateReason.RETRYING


@dataclass(frozen=True, kw_only=True)
class Facts:
    """All that a pass found out. `service` None: its spec is invalid; `seen` None: it has no Deployment of ours."""

    service: InferenceService | None
    memory: Memory
    problem: Problem | None = None
    seen: Seen | None = None
    decision: Decision | None = None
    scale_error: str = ""

    @property
    def counts(self) -> ReplicaCounts | None:
        """Replicas by state; None without a Deployment."""
        return counts(self.seen.deployment, self.seen.pods) if self.seen else None

    @property
    def stalled(self) -> Problem | None:
        """The problem that needs somebody's help."""
        return self.problem if self.problem and self.problem.stalled else None

    @property
    def answer(self) -> ServiceForecast | None:
        """The forecaster's answer."""
        return self.seen.forecast.answer if self.seen else None


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What a check says of its condition."""

    status: Truth
    reason: str
    message: str = ""


Check = Callable[[Facts], Verdict | None]


def verdicts(facts: Facts) -> dict[ConditionType, Verdict]:
    """Every condition, from the first reconcile on."""
    return {kind: _first(checks, facts) for kind, checks in CHECKS.items()}


def _first(checks: Sequence[Check], facts: Facts) -> Verdict:
    found = (check(facts) for check in checks)
    return next((verdict for verdict in found if verdict), Verdict(status="Unknown", reason=ScalingReason.NO_DECISION))


def _false(reason: str, message: str = "") -> Verdict:
    return Verdict(status="False", reason=reason, message=message)


def _true(reason: str, message: str = "") -> Verdict:
    return Verdict(status="True", reason=reason, message=message)


# Ready, Reconciling, Stalled


def _problem_not_ready(facts: Facts) -> Verdict | None:
    return _false(facts.problem.reason, facts.problem.message) if facts.problem else None


def _stuck_is_stalled(facts: Facts) -> Verdict | None:
    message = _stuck(facts)
    return _true(StateReason.ROLLOUT_STUCK, message) if message else None


def _stuck_not_ready(facts: Facts) -> Verdict | None:
    message = _stuck(facts)
    return _false(StateReason.ROLLOUT_STUCK, message) if message else None


def _stuck(facts: Facts) -> str:
    """A deadline that passed matters while pods of the template are not through, not while more of them are added."""
    found = facts.counts
    waits = found is not None and (found.rolling or found.ready == 0)
    stuck = facts.seen.deployment.stuck if waits and facts.seen else ""
    return "; ".join(filter(None, (stuck, _trouble(facts)))) if stuck else ""


def _trouble(facts: Facts) -> str:
    """What keeps the first pod of the template from running, while one is waited for."""
    found, seen = facts.counts, facts.seen
    if found is None or seen is None or not (found.rolling or found.ready == 0):
        return ""
    current = (pod for pod in seen.pods if pod.live and pod.template_hash == seen.deployment.template.hash)
    return next((f"pod {pod.name}: {pod.trouble}" for pod in current if pod.trouble), "")


def _failing_not_ready(facts: Facts) -> Verdict | None:
    message = _trouble(facts)
    return _false(StateReason.POD_FAILING, message) if message else None


def _failing_reconciling(facts: Facts) -> Verdict | None:
    message = _trouble(facts)
    return _true(StateReason.POD_FAILING, message) if message else None


def _no_replicas(facts: Facts) -> Verdict | None:
    """Nobody wants a pod: others rule the replicas (Advisory, Paused), or the minimum is zero."""
    found, decision = facts.counts, facts.decision
    coming = decision is not None and decision.act and decision.desired > 0
    if found is None or coming or found.wanted + found.ready + found.starting + found.unschedulable > 0:
        return None
    return _false(StateReason.NO_REPLICAS, "the Deployment has 0 replicas, and no pod is on its way")


def _rollout_not_ready(facts: Facts) -> Verdict | None:
    rolling = facts.counts is not None and facts.counts.rolling
    return _false(StateReason.ROLLOUT_IN_PROGRESS, "pods are being replaced by pods of the new template") if rolling else None


def _rollout_reconciling(facts: Facts) -> Verdict | None:
    rolling = facts.counts is not None and facts.counts.rolling
    return _true(StateReason.ROLLOUT_IN_PROGRESS, "pods are being replaced by pods of the new template") if rolling else None


def _no_warm_pod(facts: Facts) -> Verdict | None:
    cold = facts.counts is not None and facts.counts.ready == 0
    return _false(StateReason.NO_WARM_POD, "no pod is warm yet") if cold else None


def _starting(facts: Facts) -> Verdict | None:
    cold = facts.counts is not None and facts.counts.ready == 0
    return _true(StateReason.NO_WARM_POD, "the first pod is on its way to being warm") if cold else None


def _retrying(facts: Facts) -> Verdict | None:
    problem = facts.problem
    return _true(problem.reason, problem.message) if problem and not problem.stalled else None


def _settled(facts: Facts) -> Verdict | None:
    reason = facts.stalled.reason if facts.stalled else StateReason.UP_TO_DATE
    return _false(reason)


def _stalled(facts: Facts) -> Verdict | None:
    return _true(facts.stalled.reason, facts.stalled.message) if facts.stalled else None


def _warm(facts: Facts) -> Verdict | None:
    return _true(StateReason.WARM, "the spec is in force and at least one pod is warm") if facts.counts else None


# ScalingActive, AbleToScale, ScalingLimited


def _mode(facts: Facts) -> Verdict | None:
    mode = facts.service.spec.scaling.mode if facts.service else None
    if mode is ScalingMode.ADVISORY:
        return _false(ScalingReason.ADVISORY, "scaling.mode is Advisory: decisions are recorded, others write the replicas")
    if mode is ScalingMode.PAUSED:
        return _paused(facts)
    return None


def _paused(facts: Facts) -> Verdict:
    stale = facts.memory.stale_replicas
    if stale is None:
        return _false(ScalingReason.PAUSED, "scaling.mode is Paused: spec.replicas rules; unset, replicas are held")
    return _false(
        ScalingReason.PAUSED_HOLDING,
        f"scaling.mode is Paused and spec.replicas was {stale} before that: replicas are held until it is changed",
    )


def _demand(facts: Facts) -> Verdict | None:
    demand = facts.seen.demand if facts.seen else None
    if demand is None or demand.reading is not None:
        return None
    if not demand.configured:
        return _false(
            ScalingReason.PROMETHEUS_NOT_CONFIGURED,
            "set WARMFRONT_OPERATOR_PROMETHEUS_URL (chart value prometheus.url): replicas are held",
        )
    if demand.error:
        return _false(ScalingReason.PROMETHEUS_UNAVAILABLE, f"{demand.error}; replicas are held")
    return _false(ScalingReason.DEMAND_UNKNOWN, "Prometheus has counted no arrivals of this service lately: replicas are held")


def _demand_unusable(facts: Facts) -> Verdict | None:
    reading = facts.seen.demand.reading if facts.seen else None
    if reading is None or facts.service is None:
        return None
    why = unknown_reason(reading, capacity(facts.service))
    message = facts.decision.message if facts.decision else ""
    return _false(why, message) if why else None


def _scaling_active(facts: Facts) -> Verdict | None:
    return _true(ScalingReason.DEMAND_KNOWN, "demand is measured and followed") if facts.decision else None


def _scale_refused(facts: Facts) -> Verdict | None:
    return _false(ScalingReason.SCALE_REFUSED, facts.scale_error) if facts.scale_error else None


def _able(facts: Facts) -> Verdict | None:
    return _true(ScalingReason.READY_FOR_NEW_SCALE) if facts.seen else None


def _limited(facts: Facts) -> Verdict | None:
    if facts.decision is None:
        return None
    if not facts.decision.limited:
        return _false(ScalingReason.DESIRED_WITHIN_RANGE)
    reasons = {Binding.MAXIMUM: ScalingReason.TOO_MANY_REPLICAS, Binding.MINIMUM: ScalingReason.TOO_FEW_REPLICAS}
    return _true(reasons.get(facts.decision.binding, ScalingReason.PACED), facts.decision.message)


# ForecastReady, ForecastTrusted


def _predictive_off(facts: Facts) -> Verdict | None:
    off = facts.service is not None and facts.service.spec.scaling.predictive.mode is PredictiveMode.OFF
    return _false(ForecastReason.PREDICTIVE_OFF, "scaling.predictive.mode is Off") if off else None


def _no_answer(facts: Facts) -> Verdict | None:
    view = facts.seen.forecast if facts.seen else None
    if view is None or view.answer is not None:
        return None
    return _false(view.reason, f"{view.message}; scaling follows measured demand only")


def _no_figures(facts: Facts) -> Verdict | None:
    answer = facts.answer
    if answer is None or answer.upper is not None:
        return None
    return _false(answer.reason or answer.state, answer.message)


def _forecast_ready(facts: Facts) -> Verdict | None:
    return _true(ForecastReason.AVAILABLE) if facts.answer else None


def _not_trusted(facts: Facts) -> Verdict | None:
    answer = facts.answer
    if answer is None or answer.state is ForecastState.TRUSTED:
        return None
    return _false(answer.reason or answer.state, answer.message)


def _trusted(facts: Facts) -> Verdict | None:
    return _true(ForecastReason.TRUSTED, facts.answer.message) if facts.answer else None


# CapacityAvailable


def _unschedulable(facts: Facts) -> Verdict | None:
    stuck = [pod for pod in facts.seen.pods if pod.live and pod.unschedulable] if facts.seen else []
    if not stuck:
        return None
    return _false(CapacityReason.UNSCHEDULABLE, f"no node has room for {len(stuck)} of the pods: {stuck[0].unschedulable}")


def _pods_refused(facts: Facts) -> Verdict | None:
    failure = facts.seen.deployment.failure if facts.seen else ""
    return _false(CapacityReason.PODS_REFUSED, failure) if failure else None


def _placed(facts: Facts) -> Verdict | None:
    return _true(CapacityReason.PODS_PLACED) if facts.seen else None


CHECKS: Final[Mapping[ConditionType, Sequence[Check]]] = {
    ConditionType.READY: (
        _problem_not_ready,
        _stuck_not_ready,
        _failing_not_ready,
        _rollout_not_ready,
        _no_replicas,
        _no_warm_pod,
        _warm,
    ),
    ConditionType.RECONCILING: (_retrying, _failing_reconciling, _rollout_reconciling, _no_replicas, _starting, _settled),
    ConditionType.STALLED: (_stalled, _stuck_is_stalled, _settled),
    ConditionType.SCALING_ACTIVE: (_problem_not_ready, _mode, _demand, _demand_unusable, _scaling_active),
    ConditionType.ABLE_TO_SCALE: (_scale_refused, _problem_not_ready, _able),
    ConditionType.SCALING_LIMITED: (_limited,),
    ConditionType.FORECAST_READY: (_predictive_off, _no_answer, _no_figures, _forecast_ready),
    ConditionType.FORECAST_TRUSTED: (_predictive_off, _no_answer, _not_trusted, _trusted),
    ConditionType.CAPACITY_AVAILABLE: (_pods_refused, _unschedulable, _placed),
}
