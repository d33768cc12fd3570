"""What one of the two ways to decide, measured or holding, comes to."""

from dataclasses import dataclass

from warmfront_forecaster.planning.reasons import Reason
from warmfront_forecaster.planning.types import Binding, Candidates, Mode, Observation, ScalingPolicy


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The replicas, which input decided them and why, with every number that took part."""

    desired: int
    binding: Binding
    reason: Reason
    candidates: Candidates
    limited: bool = False


def held_replicas(observation: Observation) -> int:
    """Where a hold stays: what was last decided (so a re-created Deployment is restored), never below what is in force.

    In Advisory others scale, and only the line of our own decisions counts.
    """
    last = observation.last_desired
    if last is not None and observation.policy.mode is Mode.ADVISORY:
        return max(0, last)
    return max(0, observation.replicas.wanted, last or 0)


def bounded(replicas: int, policy: ScalingPolicy) -> int:
    """Within `minReplicas` and `maxReplicas`; the maximum wins where they contradict."""
    return min(max(replicas, policy.min_replicas), policy.max_replicas)
