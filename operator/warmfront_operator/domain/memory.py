"""What the operator carries from tick to tick for one service. All of it is rebuilt from status after a restart."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from warmfront_api.scaling import ScalingMode
from warmfront_api.status import Binding, ConditionType, DecisionStatus, InferenceServiceStatus
from warmfront_forecaster.planning.history import remember, remember_change
from warmfront_forecaster.planning.types import Decision, PastWant
from warmfront_operator.domain import coldstart
from warmfront_operator.domain.coldstart import ColdStarts
from warmfront_operator.domain.reasons import ScalingReason
from warmfront_operator.domain.text import clip, wire_time

MAX_DECISIONS: Final = 10
FIGURES_EVERY: Final = timedelta(minutes=5)


@dataclass(frozen=True, kw_only=True)
class Memory:
    """State of one service between ticks.

    `stale_replicas` is a `spec.replicas` that was already there when the mode turned to Paused: nobody asked for it now.
    `figures_at` is when figures last went into status; None: not since the start.
    """

    mode: ScalingMode | None = None
    stale_replicas: int | None = None
    failed_readings: int = 0
    past_wants: tuple[PastWant, ...] = ()
    changes: tuple[PastWant, ...] = ()
    last_desired: int | None = None
    decisions: tuple[DecisionStatus, ...] = ()
    cold_starts: ColdStarts = field(default_factory=ColdStarts)
    figures_at: datetime | None = None
    ticked_at: datetime | None = None


def restored(status: InferenceServiceStatus, now: datetime) -> Memory:
    """Memory after a start of the operator. Figures that stand in status are not due again at once."""
    decisions = tuple(status.decisions)
    return Memory(
        figures_at=now if status.forecast else None,
        mode=_last_mode(status),
        changes=_changes(decisions),
        last_desired=status.desired_replicas,
        decisions=decisions,
        cold_starts=coldstart.restored(status.cold_start),
    )


def _last_mode(status: InferenceServiceStatus) -> ScalingMode | None:
    """The mode in force when the status was written, as far as it tells; None: never reconciled."""
    reasons = {item.reason for item in status.conditions if item.type == ConditionType.SCALING_ACTIVE}
    if status.observed_generation < 0 or not reasons:
        return None
    return ScalingMode.PAUSED if ScalingReason.PAUSED in reasons else ScalingMode.ACTIVE


def _changes(decisions: tuple[DecisionStatus, ...]) -> tuple[PastWant, ...]:
    """Status' decisions, newest first, as the line of wanted replicas, oldest first: (time, from), then (time, to)."""
    oldest_first = decisions[::-1]
    return tuple(
        PastWant(time=datetime.fromisoformat(item.time), replicas=replicas)
        for item in oldest_first
        for replicas in (item.from_, item.to)
    )


def entered(memory: Memory, mode: ScalingMode, spec_replicas: int | None, wanted: int) -> Memory:
    """Note the mode. On entering Paused a differing `spec.replicas` is stale until it changes."""
    stale = memory.stale_replicas if mode is ScalingMode.PAUSED and spec_replicas == memory.stale_replicas else None
    entering = mode is ScalingMode.PAUSED and memory.mode not in (ScalingMode.PAUSED, None)
    if entering and spec_replicas != wanted:
        stale = spec_replicas
    return replace(memory, mode=mode, stale_replicas=stale)


def read(memory: Memory, *, demand_known: bool, ticked_at: datetime) -> Memory:
    """Count a tick's reading of demand. Passes between ticks use the same reading and count nothing."""
    if memory.ticked_at == ticked_at:
        return memory
    return replace(memory, failed_readings=0 if demand_known else memory.failed_readings + 1, ticked_at=ticked_at)


def unseen(memory: Memory, held: int, now: datetime) -> Memory:
    """Before the first decision of this process: what earlier ticks wanted is unknown, which is no evidence for fewer.

    They count as wanting what was held, or an operator that starts in the middle of a scale-up would cancel the pods
    that are on their way and order them anew.
    """
    if memory.past_wants:
        return memory
    return replace(memory, past_wants=(PastWant(time=now, replicas=max(held, memory.last_desired or 0)),))


def decided(memory: Memory, decision: Decision, now: datetime) -> Memory:
    """Remember a decision; a change of the wanted replicas goes into the list that status shows."""
    decisions = memory.decisions
    before = memory.last_desired or 0  # the first decision of all starts from nothing
    if decision.desired != before:
        decisions = (entry(decision, before), *decisions)[:MAX_DECISIONS]
    return replace(
        memory,
        past_wants=remember(memory.past_wants, decision, now),
        changes=remember_change(memory.changes, decision, now),
        last_desired=decision.desired,
        decisions=decisions,
    )


def figures_due(memory: Memory, before: Memory, now: datetime) -> bool:
    """Figures go into status with a decision or every five minutes, not each tick."""
    if memory.decisions != before.decisions or before.figures_at is None:
        return True
    return now - before.figures_at >= FIGURES_EVERY


def entry(decision: Decision, before: int) -> DecisionStatus:
    """A decision as status shows it. `before`: the replicas wanted until then."""
    return DecisionStatus(
        time=wire_time(decision.time),
        from_=before,
        to=decision.desired,
        binding=Binding(decision.binding),
        reason=decision.reason,
        message=clip(decision.message),
    )
