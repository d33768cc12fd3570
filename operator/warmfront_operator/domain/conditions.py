"""Conditions over time: a transition time moves only with the status, a message only when something happened."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from warmfront_api.status import Condition, ConditionType
from warmfront_operator.domain.checks import Verdict
from warmfront_operator.domain.text import clip, wire_time


def merge(
    previous: Iterable[Condition],
    verdicts: Mapping[ConditionType, Verdict],
    *,
    generation: int,
    now: datetime,
    refresh: bool,
) -> list[Condition]:
    """The conditions to report.

    With the same status, reason and generation as before, another message waits for `refresh`: messages hold figures
    that move with every tick. Conditions that nobody here knows are left out; whoever wrote them owns them.
    """
    known = {item.type: item for item in previous}
    return [
        _next(known.get(kind), kind, verdict, generation=generation, now=now, refresh=refresh)
        for kind, verdict in verdicts.items()
    ]


def _next(
    before: Condition | None, kind: ConditionType, verdict: Verdict, *, generation: int, now: datetime, refresh: bool
) -> Condition:
    if before is not None and not refresh and _same(before, verdict, generation):
        return before
    unchanged = before is not None and before.status == verdict.status
    return Condition(
        type=kind.value,
        status=verdict.status,
        reason=verdict.reason,
        message=clip(verdict.message),
        observed_generation=generation,
        last_transition_time=before.last_transition_time if before is not None and unchanged else wire_time(now),
    )


def _same(before: Condition, verdict: Verdict, generation: int) -> bool:
    return (before.status, before.reason, before.observed_generation) == (verdict.status, verdict.reason, generation)


def turned(before: Iterable[Condition], after: Iterable[Condition]) -> list[Condition]:
    """Conditions that are new, or whose status or reason is another one now."""
    known = {item.type: (item.status, item.reason) for item in before}
    return [item for item in after if known.get(item.type) != (item.status, item.reason)]
