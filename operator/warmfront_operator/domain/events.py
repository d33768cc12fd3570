"""Which Events a pass tells: what was created, what was scaled, what went wrong or right again."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from warmfront_api.inferenceservice import InferenceService
from warmfront_api.scaling import ScalingMode
from warmfront_api.status import Condition, ConditionType
from warmfront_forecaster.planning.types import Decision
from warmfront_operator.domain.reasons import EventReason, ForecastReason, ScalingReason, StateReason

# A condition is worth an Event when it turns to this status ...
PROBLEMS: Final = {
    ConditionType.STALLED: "True",
    ConditionType.ABLE_TO_SCALE: "False",
    ConditionType.CAPACITY_AVAILABLE: "False",
    ConditionType.SCALING_ACTIVE: "False",
    ConditionType.FORECAST_READY: "False",
}
# ... unless that is what the user asked for, or the normal beginning.
UNREMARKABLE: Final = frozenset({ScalingReason.ADVISORY, ScalingReason.PAUSED, ScalingReason.DEMAND_UNKNOWN})


@dataclass(frozen=True, kw_only=True)
class Event:
    """One Event. `once` names what it is about: of equal ones only the first is told."""

    type: Literal["Normal", "Warning"]
    reason: str
    action: str
    note: str
    once: str


def scaled(service: InferenceService, decision: Decision, before: int, after: int) -> Event:
    """The replicas were written."""
    return Event(
        type="Normal",
        reason=EventReason.SCALED_UP if after > before else EventReason.SCALED_DOWN,
        action="Scale",
        note=f"{before} -> {after} replicas ({decision.binding}, {decision.reason}): {decision.message}",
        once=f"scale/{service.uid}/{decision.time.isoformat()}",
    )


def created(service: InferenceService, uid: str) -> Event:
    """The Deployment was created."""
    note = f"created the Deployment {service.name} and what belongs to it"
    return Event(type="Normal", reason=EventReason.CREATED, action="Create", note=note, once=f"created/{uid}")


def replicas_ignored(service: InferenceService) -> Event | None:
    """`spec.replicas` is set where it changes nothing; told once per value."""
    spec = service.spec
    if spec.replicas is None or spec.scaling.mode is ScalingMode.PAUSED:
        return None
    note = f"spec.replicas ({spec.replicas}) is obeyed only with scaling.mode Paused; use minReplicas and maxReplicas instead"
    return Event(
        type="Warning",
        reason=EventReason.REPLICAS_IGNORED,
        action="Decide",
        note=note,
        once=f"replicas/{service.uid}/{spec.replicas}",
    )


def of_conditions(uid: str, turned: Iterable[Condition]) -> list[Event]:
    """Problems that have begun, and readiness."""
    return [event for item in turned if (event := _of_condition(uid, item))]


def _of_condition(uid: str, item: Condition) -> Event | None:
    once = f"{item.type}/{uid}/{item.reason}/{item.last_transition_time}"
    if item.type == ConditionType.READY and item.status == "True":
        return Event(type="Normal", reason=item.type, action="Reconcile", note=item.message, once=once)
    return _warning(item, once) if _is_problem(item) else None


def _is_problem(item: Condition) -> bool:
    kind = ConditionType(item.type)
    if PROBLEMS.get(kind) != item.status or item.reason in UNREMARKABLE:
        return False
    if kind is ConditionType.FORECAST_READY:
        return item.reason == ForecastReason.FORECASTER_UNAVAILABLE  # learning is no problem
    return kind is ConditionType.STALLED or item.reason not in set(StateReason)  # those are told with Stalled


def _warning(item: Condition, once: str) -> Event:
    return Event(type="Warning", reason=item.reason, action="Reconcile", note=item.message, once=once)
