"""When, in the next day, more replicas will be needed than there are now."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from warmfront_forecaster.domain.series import FloatArray

MOST_PEAKS = 10
NEEDLESS_DIGITS = 1e-9  # 3 x 0.7 is a hair below 2.1 in binary; a replica must not be foretold for that


@dataclass(frozen=True, kw_only=True)
class Peak:
    """A stretch of time (Unix seconds) in which up to `replicas` are needed."""

    start: float
    end: float
    replicas: int


def peaks(begins: FloatArray, uppers: FloatArray, slot_seconds: float, target_utilization: float, replicas: int) -> list[Peak]:
    """Runs of slots whose upper forecast needs more than `replicas`, in order of time, at most MOST_PEAKS.

    Args:
        begins: when each slot begins (Unix seconds), ascending, no gaps, shape (n,).
        uppers: the upper forecast of each, in replica-equivalents, finite, shape (n,).
        slot_seconds: how long a slot is.
        target_utilization: share of a replica to plan for, in (0, 1].
        replicas: what is wanted now.
    """
    needs = [math.ceil(upper / target_utilization * (1 - NEEDLESS_DIGITS)) for upper in uppers.tolist()]
    return [
        Peak(start=float(begins[first]), end=float(begins[last]) + slot_seconds, replicas=max(needs[first : last + 1]))
        for first, last in _runs([need > replicas for need in needs])
    ][:MOST_PEAKS]


def _runs(flags: Sequence[bool]) -> list[tuple[int, int]]:
    """First and last index of each run of True."""
    padded = [False, *flags, False]
    edges = [i for i in range(1, len(padded)) if padded[i] != padded[i - 1]]
    return [(begin - 1, end - 2) for begin, end in zip(edges[::2], edges[1::2], strict=True)]
