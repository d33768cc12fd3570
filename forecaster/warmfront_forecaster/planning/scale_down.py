"""When fewer replicas are right: only when every condition holds."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from warmfront_forecaster.planning.reasons import Reason
from warmfront_forecaster.planning.types import PastWant, ReplicaCounts

WINDOW_TRUSTED = timedelta(seconds=120)
WINDOW = timedelta(seconds=300)
TICKS_MISSED = 4  # a longer silence breaks the window: what was wanted in it is unknown


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How far down each condition lets the replicas go. `payback` None: no forecast is acted on."""

    want: int  # what this tick wants within bounds
    held: int  # replicas in force
    down_window: int  # the most wanted in the window, this tick's want included
    window_watched: bool  # the whole window was seen
    consolidated: int  # what this tick would want if no pod were starting
    payback: int | None
    pace: int


@dataclass(frozen=True, kw_only=True)
class Descent:
    """Replicas to go down to, and the condition that stopped it there (None: it went all the way)."""

    replicas: int
    reason: Reason | None = None


def descend(limits: Limits, replicas: ReplicaCounts) -> Descent:
    """The fewest replicas, from `held` down to `want`, at which every condition holds.

    The load must fit without the pods that are starting: what they are expected to clear counts for them only while they
    stay, or cancelling them would order them anew. Pods that are not Ready go first: lowering to no fewer than the Ready
    ones waits for no pace, rollout or unwatched window, only for what the window that was seen wanted (or noise would
    cancel a pod just before it is warm) and for the forecast's median. With no Ready pod nobody counts arrivals, so
    nothing goes.
    """
    if replicas.ready == 0:
        return Descent(replicas=limits.held, reason=Reason.NO_READY_REPLICA)
    warm = _highest(limits, [*_wanted_levels(limits), *_warm_levels(limits, replicas)])
    pending = _highest(limits, [*_wanted_levels(limits), (replicas.ready, Reason.PENDING_CANCELLED)])
    return min(warm, pending, key=lambda descent: descent.replicas)


def window(*, trusted: bool) -> timedelta:
    """The down-window: shorter while a trusted forecast guards against what comes back."""
    return WINDOW_TRUSTED if trusted else WINDOW


def most_wanted(past: Iterable[PastWant], now: datetime, length: timedelta, want: int) -> int:
    """The most that any tick of the window wanted, this one's `want` included."""
    return max([want, *(tick.replicas for tick in past if now - length <= tick.time <= now)])


def watched(past: Iterable[PastWant], now: datetime, length: timedelta, tick_seconds: float) -> bool:
    """Whether ticks follow each other without a gap from the window's start until now."""
    gap = timedelta(seconds=TICKS_MISSED * tick_seconds)
    since = now
    for time in sorted((tick.time for tick in past if tick.time <= now), reverse=True):
        if since - time > gap:
            break
        since = time
    return since <= now - length


def _wanted_levels(limits: Limits) -> list[tuple[int, Reason]]:
    return [
        (limits.down_window, Reason.DOWN_WINDOW),
        (limits.consolidated, Reason.LOAD_DOES_NOT_FIT),
        (limits.payback or 0, Reason.FORECAST_PAYBACK),
    ]


def _warm_levels(limits: Limits, replicas: ReplicaCounts) -> list[tuple[int, Reason]]:
    levels = [(limits.pace, Reason.SCALE_DOWN_PACE)]
    if not limits.window_watched:
        levels.append((limits.held, Reason.HISTORY_TOO_SHORT))
    if replicas.rolling:
        levels.append((limits.held, Reason.ROLLOUT_UNDER_WAY))
    return levels


def _highest(limits: Limits, levels: list[tuple[int, Reason]]) -> Descent:
    """The level that stops the descent first; of equal ones the first named."""
    level, reason = max(levels, key=lambda pair: pair[0])
    if level <= limits.want:
        return Descent(replicas=limits.want)
    return Descent(replicas=min(level, limits.held), reason=reason)
