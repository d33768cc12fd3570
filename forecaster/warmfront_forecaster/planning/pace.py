"""How fast replicas may change. Floors, caps and restoring what was decided before are exempt."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from warmfront_forecaster.planning.types import PastWant

UP_PERIOD = timedelta(seconds=60)
UP_PERCENT = 100
UP_REPLICAS = 4
DOWN_PERIOD = timedelta(seconds=120)
DOWN_PERCENT = 10
DOWN_REPLICAS = 1


def most_allowed(changes: Iterable[PastWant], held: int, now: datetime) -> int:
    """Most replicas now: +100 % or +4, whichever is more, over the fewest in force during the last 60 s."""
    base = min(_in_force(changes, now, UP_PERIOD), default=held)
    return base + max(UP_REPLICAS, base * UP_PERCENT // 100)


def fewest_allowed(changes: Iterable[PastWant], held: int, now: datetime) -> int:
    """Fewest replicas now: 10 % (rounded down) or 1, whichever is more, under the most in force during the last 120 s."""
    base = max([held, *_in_force(changes, now, DOWN_PERIOD)])
    return max(0, base - max(DOWN_REPLICAS, base * DOWN_PERCENT // 100))


def _in_force(changes: Iterable[PastWant], now: datetime, period: timedelta) -> list[int]:
    """Every number of replicas that was wanted at some time in the period: the one it began with, and each after it."""
    start = now - period
    known = [change for change in changes if change.time <= now]
    before = [change.replicas for change in known if change.time <= start]
    return before[-1:] + [change.replicas for change in known if change.time > start]
