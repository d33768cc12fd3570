"""The answer to demand as measured now."""

from dataclasses import dataclass

from warmfront_forecaster.planning.demand import request_seconds
from warmfront_forecaster.planning.sizing import need
from warmfront_forecaster.planning.types import Capacity, DemandReading, ReplicaCounts

SHORTEST_CLEARING_SECONDS = 60.0  # a pod that starts in seconds must not make a backlog look like a flood


@dataclass(frozen=True, kw_only=True)
class Reactive:
    """What measured demand needs. `demand` and `backlog` in replica-equivalents; the backlog is a part of `replicas`."""

    demand: float
    backlog: float
    replicas: int
    for_demand_alone: int


def react(reading: DemandReading, capacity: Capacity, replicas: ReplicaCounts, lead_time_seconds: float) -> Reactive:
    """`n_react = need(d + backlog term)`; the reading must be one that `demand` can compute."""
    work_seconds = request_seconds(reading, capacity)
    demand = reading.arrivals_per_second * work_seconds
    backlog = backlog_term(reading.backlog_requests * work_seconds, demand, replicas, lead_time_seconds)
    return Reactive(
        demand=demand,
        backlog=backlog,
        replicas=need(demand + backlog, capacity),
        for_demand_alone=need(demand, capacity),
    )


def backlog_term(backlog_seconds: float, demand: float, replicas: ReplicaCounts, lead_time_seconds: float) -> float:
    """What waiting work adds to demand: `max(0, backlog - cleared by starting pods) / max(60 s, L)`.

    A pod ordered now helps from L on. Until then the pods on their way clear what they carry beyond demand; they are
    taken to be half-way, so they work for L / 2 of it. Pods that no node has room for clear nothing.

    Args:
        backlog_seconds: waiting work, in seconds of one whole replica.
        demand: replica-equivalents.
        replicas: pods now.
        lead_time_seconds: L.

    Returns:
        Replica-equivalents, never negative.
    """
    spare = min(float(replicas.starting), replicas.ready + replicas.starting - demand)
    cleared_seconds = max(0.0, spare) * lead_time_seconds / 2
    return max(0.0, backlog_seconds - cleared_seconds) / max(SHORTEST_CLEARING_SECONDS, lead_time_seconds)
