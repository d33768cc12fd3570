"""The state of a cluster: what the last command was doing, and what is true now."""

import json
from dataclasses import asdict, dataclass
from enum import StrEnum

from e2e.localcluster.layout import ClusterPaths
from e2e.localcluster.processes import alive, recorded


class Phase(StrEnum):
    """`starting` on disk without a living command behind it means that the command died midway."""

    ABSENT = "absent"
    STARTING = "starting"
    RUNNING = "running"
    BROKEN = "broken"


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What the cluster consists of."""

    nodes: int = 2
    gpus_per_node: int = 4


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """What the state file holds."""

    phase: Phase
    shape: Shape


def write(paths: ClusterPaths, phase: Phase, shape: Shape) -> None:
    """Record a phase, whole or not at all."""
    paths.data.mkdir(parents=True, exist_ok=True)
    draft = paths.state_file.with_suffix(".draft")
    draft.write_text(json.dumps({"phase": phase, "shape": asdict(shape)}))
    draft.replace(paths.state_file)


def read(paths: ClusterPaths) -> Recorded | None:
    """What is on disk; None when there is nothing that can be read."""
    try:
        content = json.loads(paths.state_file.read_text())
        return Recorded(phase=Phase(content["phase"]), shape=Shape(**content["shape"]))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def dead_components(paths: ClusterPaths, expected: list[str]) -> list[str]:
    """The components that should run and do not."""
    running = recorded(paths.processes)
    return [name for name in expected if name not in running or not alive(running[name])]


def observe(paths: ClusterPaths, expected: list[str]) -> Phase:
    """What is true now: a cluster recorded as running with a dead component is broken."""
    found = read(paths)
    if found is None:
        return Phase.BROKEN if paths.data.exists() or paths.network_namespace_file.exists() else Phase.ABSENT
    if found.phase is Phase.RUNNING and dead_components(paths, expected):
        return Phase.BROKEN
    return found.phase
