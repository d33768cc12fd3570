"""Which numbers may be believed."""

import math
from typing import TypeGuard

from warmfront_forecaster.planning.types import Capacity


def is_amount(value: float | None) -> TypeGuard[float]:
    """Whether a value is known, finite and not negative. All else is disqualified, never computed with."""
    return value is not None and math.isfinite(value) and value >= 0


def is_usable(capacity: Capacity) -> bool:
    """Whether a capacity can be divided by: finite rates above zero and a target in (0, 1]."""
    rates = (capacity.prefill_tokens_per_second, capacity.decode_tokens_per_second)
    return all(math.isfinite(rate) and rate > 0 for rate in rates) and 0 < capacity.target_utilization <= 1
