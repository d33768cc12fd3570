"""How far ahead of need a pod is started."""

import math
from collections.abc import Sequence

from warmfront_forecaster.planning.amounts import is_amount
from warmfront_forecaster.planning.types import LeadTimePolicy

NEWEST_SAMPLES = 50  # older start-ups tell of older images and nodes
LONGEST_SECONDS = 7200.0  # as the API bounds the fixed value; one pod that hung must not push the horizon to next week


def lead_time_seconds(policy: LeadTimePolicy, samples: Sequence[float]) -> float:
    """Seconds from a decision to a warm pod, with the margin that the policy asks for.

    Measured: the percentile of the newest samples by nearest rank (of few samples the largest), plus the margin,
    rounded up to a whole second. No sample that can be believed, or a fixed policy: `policy.seconds` as it stands.

    Args:
        policy: where the time comes from.
        samples: measured seconds from decision to warm, oldest first; those not finite or negative are left out.

    Returns:
        Seconds, at most `LONGEST_SECONDS` where measured.
    """
    usable = sorted([sample for sample in samples if is_amount(sample)][-NEWEST_SAMPLES:])
    if not policy.measured or not usable:
        return policy.seconds
    rank = max(1, math.ceil(policy.percentile * len(usable) / 100))
    seconds = usable[min(rank, len(usable)) - 1] + policy.margin_seconds
    return float(math.ceil(min(seconds, LONGEST_SECONDS)))
