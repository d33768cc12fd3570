"""How many replicas a demand needs."""

import math

from warmfront_forecaster.planning.types import Capacity

MOST_REPLICAS = 100_000  # more than any cluster holds; keeps absurd demand a number that status can carry
_ROUNDING = 1e-9  # 3 x 0.7 is a hair below 2.1 in binary; a replica must not be started for that


def need(demand: float, capacity: Capacity) -> int:
    """The smallest n with `n * target_utilization >= demand`.

    Args:
        demand: replica-equivalents, not negative (see `amounts.is_amount`).
        capacity: of one replica; only its target share is used.

    Returns:
        Replicas, from 0 to `MOST_REPLICAS`; never fewer for more demand.

    Raises:
        ValueError: demand is not a number.
    """
    replicas = demand / capacity.target_utilization
    if replicas >= MOST_REPLICAS:
        return MOST_REPLICAS
    return max(0, math.ceil(replicas * (1 - _ROUNDING)))
