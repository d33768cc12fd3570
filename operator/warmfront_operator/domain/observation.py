"""From what was seen to the one value that `decide` takes."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from warmfront_api.inferenceservice import InferenceService
from warmfront_api.scaling import LeadTime, LeadTimeSource, PredictiveMode
from warmfront_forecaster.contract import ServiceForecast
from warmfront_forecaster.planning import types as planning
from warmfront_operator.domain import coldstart
from warmfront_operator.domain.memory import Memory
from warmfront_operator.domain.reasons import ForecastReason
from warmfront_operator.domain.resources import Deployment, Pod


@dataclass(frozen=True, kw_only=True)
class DemandView:
    """A service's demand. `reading` None: unknown, and `error` says why where there is a cause."""

    reading: planning.DemandReading | None = None
    error: str = ""
    configured: bool = True


@dataclass(frozen=True, kw_only=True)
class ForecastView:
    """A service's forecast. `answer` None: there is none, and `reason` and `message` say why."""

    answer: ServiceForecast | None = None
    reason: str = ForecastReason.NO_ANSWER
    message: str = "the forecaster has not been asked about this service yet"


@dataclass(frozen=True, kw_only=True)
class Seen:
    """Everything seen of one service in one pass."""

    service: InferenceService
    deployment: Deployment
    pods: tuple[Pod, ...]
    demand: DemandView
    forecast: ForecastView
    now: datetime
    tick_seconds: float


def live(pods: Iterable[Pod]) -> tuple[Pod, ...]:
    """Pods that count as replicas."""
    return tuple(pod for pod in pods if pod.live)


def rolling(deployment: Deployment, pods: Iterable[Pod]) -> bool:
    """Whether pods of another rendering of the template still exist.

    The Deployment's own completeness needs every replica available, so one unschedulable pod would look like a rollout.
    """
    return any(pod.template_hash != deployment.template.hash for pod in live(pods))


def counts(deployment: Deployment, pods: Iterable[Pod]) -> planning.ReplicaCounts:
    """Replicas by state."""
    pods = live(pods)
    ready, stuck = sum(pod.ready for pod in pods), sum(bool(pod.unschedulable) for pod in pods)
    return planning.ReplicaCounts(
        wanted=deployment.replicas,
        ready=ready,
        starting=len(pods) - ready - stuck,
        unschedulable=stuck,
        rolling=rolling(deployment, pods),
    )


def observation(seen: Seen, memory: Memory) -> planning.Observation:
    """What `decide` may know."""
    return planning.Observation(
        policy=policy(seen.service, memory),
        capacity=capacity(seen.service),
        replicas=counts(seen.deployment, seen.pods),
        demand=seen.demand.reading,
        failed_readings=memory.failed_readings,
        forecast=forecast(seen.service, seen.forecast),
        cold_start_seconds=cold_start_seconds(seen, memory),
        past_wants=memory.past_wants,
        last_desired=memory.last_desired,
        last_scale_up=memory.changes,
        tick_seconds=seen.tick_seconds,
    )


def cold_start_seconds(seen: Seen, memory: Memory) -> tuple[float, ...]:
    """Start-up samples for the lead time."""
    return coldstart.seconds(memory.cold_starts, seen.deployment.template.hash, seen.pods, seen.now)


def policy(service: InferenceService, memory: Memory) -> planning.ScalingPolicy:
    """The user's scaling block, in planning's units."""
    spec, scaling = service.spec, service.spec.scaling
    stale = spec.replicas is not None and spec.replicas == memory.stale_replicas
    return planning.ScalingPolicy(
        mode=planning.Mode(scaling.mode),
        predictive=planning.PredictiveMode(scaling.predictive.mode),
        min_replicas=scaling.min_replicas,
        max_replicas=scaling.max_replicas,
        max_step_percent=scaling.predictive.max_step_percent,
        lead_time=lead_time(scaling.predictive.lead_time),
        fallback_replicas=scaling.fallback.replicas,
        fallback_threshold=scaling.fallback.failure_threshold,
        paused_replicas=None if stale else spec.replicas,
    )


def lead_time(spec: LeadTime) -> planning.LeadTimePolicy:
    """How far ahead, in planning's units."""
    return planning.LeadTimePolicy(
        measured=spec.source is LeadTimeSource.MEASURED,
        percentile=spec.percentile,
        margin_seconds=float(spec.margin_seconds),
        seconds=float(spec.seconds),
    )


def capacity(service: InferenceService) -> planning.Capacity:
    """What one replica does, in planning's units."""
    spec = service.spec.scaling.capacity
    return planning.Capacity(
        prefill_tokens_per_second=float(spec.prefill_tokens_per_second),
        decode_tokens_per_second=float(spec.decode_tokens_per_second),
        target_utilization=spec.target_utilization_percent / 100,
    )


def forecast(service: InferenceService, view: ForecastView) -> planning.Forecast | None:
    """The forecast in planning's units; None where the user wants none."""
    if service.spec.scaling.predictive.mode is PredictiveMode.OFF:
        return None
    answer = view.answer
    if answer is None:
        return planning.Forecast(state=planning.ForecastState.UNAVAILABLE, reason=view.reason, message=view.message)
    return planning.Forecast(
        state=answer.state,
        reason=answer.reason,
        message=answer.message,
        upper=answer.upper,
        median=answer.median,
        max_demand_seen=answer.max_demand_seen,
    )
