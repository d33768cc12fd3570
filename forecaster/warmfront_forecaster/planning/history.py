"""What the operator carries from one tick to the next."""

from datetime import datetime

from warmfront_forecaster.planning.scale_down import WINDOW
from warmfront_forecaster.planning.types import Decision, PastWant

KEPT = WINDOW  # the longest window that any rule looks back over


def remember(past: tuple[PastWant, ...], decision: Decision, now: datetime) -> tuple[PastWant, ...]:
    """Append what this tick wanted to `Observation.past_wants` and drop what no window reaches.

    A tick that held for want of a reading counts as wanting what it held: an outage is no evidence of low demand.
    """
    numbers = decision.candidates
    want = decision.desired if numbers.want is None else numbers.want
    entry = PastWant(time=now, replicas=want, without_forecast=numbers.want_without_forecast)
    return (*_recent(past, now), entry)


def remember_change(changes: tuple[PastWant, ...], decision: Decision, now: datetime) -> tuple[PastWant, ...]:
    """Append to `Observation.last_scale_up` what is wanted from now on, if it differs from before.

    The first entry is the number before the first change, so that the pace knows where it began. After a restart
    status' decisions give the same entries: (time, from), then (time, to).
    """
    entry = PastWant(time=now, replicas=decision.desired, without_forecast=decision.candidates.without_forecast)
    kept = _recent(changes, now) or (_before(decision, now),)
    return kept if _is_same(kept[-1], entry) else (*kept, entry)


def _before(decision: Decision, now: datetime) -> PastWant:
    return PastWant(time=now, replicas=decision.current, without_forecast=decision.current)


def _is_same(one: PastWant, other: PastWant) -> bool:
    return (one.replicas, one.without_forecast) == (other.replicas, other.without_forecast)


def _recent(past: tuple[PastWant, ...], now: datetime) -> tuple[PastWant, ...]:
    """All in the window and the one before it; what lies in the future (a clock set back) is dropped."""
    start = now - KEPT
    known = tuple(entry for entry in past if entry.time <= now)
    before = tuple(entry for entry in known if entry.time <= start)
    return (*before[-1:], *(entry for entry in known if entry.time > start))
