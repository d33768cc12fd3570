"""`python -m e2e.demo`: the main job on recorded traffic, on a real Kubernetes. See docs/tutorials/first-service.md.

Runs twice: outside it starts the cluster and removes it again (not with KEEP=1, nor one that ran before); inside the
cluster's network it shows.
"""

import argparse
import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

from e2e.demo.results import finish
from e2e.demo.scenario import recorded
from e2e.demo.snapshot import Snapshot, heading, row
from e2e.demo.stage import Stage, explain_conditions
from e2e.history.errors import HistoryError
from e2e.localcluster import cluster
from e2e.localcluster.console import say
from e2e.localcluster.errors import LocalClusterError
from e2e.localcluster.inside import existing_kubeconfig
from e2e.localcluster.layout import cache, cluster_paths
from e2e.localcluster.state import Phase
from e2e.support.errors import SupportError

WORKSPACE: Final = Path("build/demo")
CLUSTER: Final = (sys.executable, "-m", "e2e.localcluster")
HEADING_EVERY_ROWS: Final = 20

WHAT_COMES: Final = """\
Warmfront's main job, on recorded traffic:
  1. a real two-node Kubernetes (first time about 15 min: it is built from source, with all images; later about 1 min)
  2. Warmfront by Helm, ten recorded days in Prometheus, one service with a 90 s start-up (about 4 min)
  3. the eleventh day: at rest, then the jump at 10:10 (about 11 min), then a verdict
All of it lives in a network namespace of its own; at the end it is removed,
unless it ran before (KEEP=1 leaves it in any case)."""

LOOK_AROUND: Final = """\
The cluster is left running ({why}). To look around:
  make kubectl ARGS="get inferenceservices.warmfront.dev -A"
  make kubectl ARGS="-n demo describe inferenceservices.warmfront.dev chat"
  make kubectl ARGS="-n warmfront-system logs deployment/warmfront-operator"
  .venv/bin/python -m e2e.localcluster relay 9090 monitoring/prometheus:9090   # then http://127.0.0.1:9090
To remove it:
  make cluster-down"""


def main() -> int:
    """Run the outer or the inner part; the exit status says whether the main job was shown."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is removed
    options = _parser().parse_args()
    try:
        return _inside() if options.inside else _outside()
    except LocalClusterError as error:
        print(f"FAILED: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        say("stopped")
        return 130


def _outside() -> int:
    print(WHAT_COMES, flush=True)
    ran_before = _runs()
    try:
        if status := subprocess.call([*CLUSTER, "up"]):
            return status
        return _wait([*CLUSTER, "in", "--", sys.executable, "-m", "e2e.demo", "--inside"])
    finally:
        _leave(ran_before=ran_before)


def _leave(*, ran_before: bool) -> None:
    """Remove the cluster, unless it was not ours to start or is to be kept; what is left is said."""
    keep = bool(os.environ.get("KEEP"))
    if not ran_before and not keep:
        subprocess.call([*CLUSTER, "down"])
    elif _runs():
        print(LOOK_AROUND.format(why="it ran before" if ran_before else "KEEP=1"), flush=True)
    else:
        print(
            "The cluster is not running: `make demo` starts it anew, `make cluster-down` removes what is left of it.", flush=True
        )


def _runs() -> bool:
    """Whether the cluster runs now; one that exists outside is taken to run."""
    return bool(existing_kubeconfig()) or cluster.status(cluster_paths(cache())).phase is Phase.RUNNING


def _wait(command: list[str]) -> int:
    """Run the inner part; Ctrl-C reaches it by the terminal, and it is waited for so that it can end in order."""
    with subprocess.Popen(command) as inner:
        try:
            return inner.wait()
        except BaseException:
            inner.terminate()
            inner.wait(timeout=30)
            raise


def _inside() -> int:
    rows = _Rows()
    stage = Stage(scenario=recorded(), workspace=WORKSPACE, tell=say, show=rows.print)
    try:
        shift = stage.prepare()
        evidence, snapshots = asyncio.run(stage.perform(shift))
    except (SupportError, HistoryError) as error:
        for line in explain_conditions(stage.watched):
            print(f"  {line}")
        print(f"FAILED: the demo cannot go on: {error}", flush=True)
        return 2
    return finish(evidence, snapshots, stage.scenario, WORKSPACE)


class _Rows:
    """Prints the live table, with its heading now and then."""

    def __init__(self) -> None:
        self._count = 0

    def print(self, snapshot: Snapshot, jump_at: float) -> None:
        """Print one row."""
        if self._count % HEADING_EVERY_ROWS == 0:
            print(heading(), flush=True)
        self._count += 1
        print(row(snapshot, jump_at=jump_at), flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m e2e.demo", description=__doc__)
    parser.add_argument("--inside", action="store_true", help="the part that runs in the cluster's network (used by itself)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
