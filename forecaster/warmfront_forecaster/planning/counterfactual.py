"""The same observation as it would be had the forecast never been acted on."""

from dataclasses import replace

from warmfront_forecaster.planning.types import Observation, PastWant, PredictiveMode, ReplicaCounts


def without_forecast(observation: Observation) -> Observation:
    """The observation with predictive.mode Off, now and, as far as `history` tracked it, on every tick before.

    Without the tracked line the replicas that a forecast brought would count as wanted without it. Demand and backlog
    stay those of the real fleet, so late pods show as late, not as the queue that they would have caused.
    """
    off = replace(observation, policy=replace(observation.policy, predictive=PredictiveMode.OFF))
    changes = observation.last_scale_up
    tracked = changes[-1].without_forecast if changes else None
    if tracked is None:
        return off
    return replace(
        off,
        replicas=_fleet_of(tracked, observation.replicas),
        past_wants=_line(observation.past_wants),
        last_scale_up=_line(changes),
        last_desired=tracked,
    )


def _line(past: tuple[PastWant, ...]) -> tuple[PastWant, ...]:
    return tuple(
        replace(entry, replicas=entry.replicas if entry.without_forecast is None else entry.without_forecast) for entry in past
    )


def _fleet_of(wanted: int, fleet: ReplicaCounts) -> ReplicaCounts:
    """The fleet cut down to `wanted` pods, warm ones first."""
    ready = min(fleet.ready, wanted)
    starting = min(fleet.starting, wanted - ready)
    unschedulable = min(fleet.unschedulable, wanted - ready - starting)
    return replace(fleet, wanted=wanted, ready=ready, starting=starting, unschedulable=unschedulable)
