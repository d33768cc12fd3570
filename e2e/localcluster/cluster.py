"""Up, down and status of one cluster."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from e2e.localcluster import state
from e2e.localcluster.api import Api
from e2e.localcluster.bringup import Site, ensure_everything, importing
from e2e.localcluster.components import expected_names
from e2e.localcluster.console import say, step
from e2e.localcluster.errors import LocalClusterError
from e2e.localcluster.holder import HOLDER
from e2e.localcluster.layout import ClusterPaths
from e2e.localcluster.nodes import Archive
from e2e.localcluster.state import Phase, Shape
from e2e.localcluster.sweep import sweep


@dataclass(frozen=True, kw_only=True)
class Status:
    """What is true now."""

    phase: Phase
    shape: Shape | None
    dead: list[str]


def status(paths: ClusterPaths) -> Status:
    """Observe a cluster without changing it."""
    found = state.read(paths)
    expected = expected_names(found.shape.nodes) if found else []
    return Status(
        phase=state.observe(paths, expected),
        shape=found.shape if found else None,
        dead=state.dead_components(paths, expected),
    )


def describe(paths: ClusterPaths, seen: Status) -> str:
    """One line for the terminal."""
    size = f", {seen.shape.nodes} nodes with {seen.shape.gpus_per_node} GPUs each" if seen.shape else ""
    dead = f"; not running: {', '.join(seen.dead)}" if seen.shape and seen.dead else ""
    return f"cluster {paths.name}: {seen.phase}{size}{dead}"


def wanted_shape(seen: Status, nodes_wanted: int | None, gpus: int | None) -> Shape:
    """The shape asked for, where nothing is said the one that is there, else the default.

    Raises:
        LocalClusterError: a running cluster has another shape; it is not rebuilt under its users.
    """
    base = seen.shape or Shape()
    asked = Shape(
        nodes=base.nodes if nodes_wanted is None else nodes_wanted,
        gpus_per_node=base.gpus_per_node if gpus is None else gpus,
    )
    if seen.phase is Phase.RUNNING and asked != base:
        raise LocalClusterError(
            f"The cluster runs with {base.nodes} nodes of {base.gpus_per_node} GPUs. For another shape take it down first: "
            "`make cluster-down`."
        )
    return asked


def can_mend(seen: Status, paths: ClusterPaths) -> bool:
    """A cluster that once ran is mended in place, with its objects, as long as its namespaces live."""
    found = state.read(paths)
    return found is not None and found.phase is Phase.RUNNING and seen.phase is Phase.BROKEN and HOLDER not in seen.dead


def refresh(site: Site, seen: Status) -> None:
    """Bring the images of a running cluster up to date."""
    with importing(site) as jobs:
        changed = sorted({reference for job in jobs for reference in job.result()})
    if changed:
        say(f"new in the cluster: {', '.join(changed)}; pods that run keep the old ones until they are restarted")
    say(f"{describe(site.paths, seen)}; {'nothing else' if changed else 'nothing'} to do")


def mend(site: Site, seen: Status) -> None:
    """Start the dead parts of a cluster that was running."""
    say(f"mending the cluster {site.paths.name}: {', '.join(seen.dead)} died")
    ensure_everything(site)


def build(site: Site) -> None:
    """Start a cluster from nothing. A command killed in here leaves the phase `starting`, which the next one sweeps."""
    state.write(site.paths, Phase.STARTING, site.shape)
    try:
        ensure_everything(site)
    except LocalClusterError:
        state.write(site.paths, Phase.BROKEN, site.shape)
        raise
    state.write(site.paths, Phase.RUNNING, site.shape)


def up(paths: ClusterPaths, binary: Path, archives: Sequence[Archive], *, node_count: int | None, gpus: int | None) -> bool:
    """Bring the cluster up; returns False when it was up before.

    Raises:
        LocalClusterError: it does not come up; the message says which part and shows the end of its log.
    """
    seen = status(paths)
    site = Site(paths=paths, binary=binary, shape=wanted_shape(seen, node_count, gpus), archives=archives)
    if seen.phase is Phase.RUNNING and Api(paths).ready():
        refresh(site, seen)
        return False
    if can_mend(seen, paths):
        mend(site, seen)
        return True
    if seen.phase is not Phase.ABSENT:
        with step(f"removed what an earlier run left ({seen.phase})"):
            sweep(paths)
    build(site)
    return True


def down(paths: ClusterPaths) -> bool:
    """Remove the cluster whole; returns False when there was nothing."""
    there = status(paths).phase is not Phase.ABSENT
    sweep(paths)
    return there
