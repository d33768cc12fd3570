"""Running commands where the cluster is: in its network, with its name server and its kubeconfig."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from e2e.localcluster.commands import without_proxies
from e2e.localcluster.errors import CommandFailedError, LocalClusterError
from e2e.localcluster.holder import HOLDER, MACHINE, recorded_pid
from e2e.localcluster.layout import Cache, ClusterPaths, cluster_paths
from e2e.localcluster.namespaces import enter_process

# Set inside: the name of the cluster whose network a process is in.
INSIDE = "WARMFRONT_INSIDE"
EXISTING = "WARMFRONT_KUBECONFIG"


def existing_kubeconfig(environment: Mapping[str, str] = os.environ) -> Path | None:
    """The kubeconfig of a cluster that is not ours, where the user names one.

    Raises:
        LocalClusterError: there is no such file.
    """
    chosen = environment.get(EXISTING)
    if not chosen:
        return None
    if not Path(chosen).is_file():
        raise LocalClusterError(f"{EXISTING}={chosen}: there is no such file.")
    return Path(chosen).resolve()


def environment_inside(where: Cache, paths: ClusterPaths, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What a command inside gets: the kubeconfig, no proxies, and our programs on its PATH."""
    path = f"{where.on_path}:{environment.get('PATH', os.defpath)}"
    return {**without_proxies(environment), "KUBECONFIG": str(paths.kubeconfig), INSIDE: paths.name, "PATH": path}


def enter_cluster(paths: ClusterPaths) -> None:
    """Move this process inside.

    Raises:
        ClusterNotRunningError: there is no cluster.
    """
    enter_process(recorded_pid(paths, HOLDER))


def machine_pid(where: Cache, environment: Mapping[str, str] = os.environ) -> int:
    """A process in the machine's own namespaces: this one, unless it was started inside a cluster.

    Raises:
        ClusterNotRunningError: the cluster that this process is in has gone down.
    """
    name = environment.get(INSIDE)
    return recorded_pid(cluster_paths(where, {"WARMFRONT_CLUSTER": name}), MACHINE) if name else os.getpid()


def go_home(where: Cache, environment: Mapping[str, str] = os.environ) -> None:
    """Leave the inside, where the command was started there: clusters are made and removed from the machine's own namespaces.

    Raises:
        ClusterNotRunningError: the cluster that this process is in has gone down.
    """
    if environment.get(INSIDE):
        enter_process(machine_pid(where, environment))


def replace_by(command: Sequence[str], environment: Mapping[str, str]) -> None:
    """Become another program.

    Raises:
        CommandFailedError: it is not there.
    """
    try:
        os.execvpe(command[0], list(command), dict(environment))  # noqa: S606 - the user's own command
    except FileNotFoundError as error:
        raise CommandFailedError(f"{command[0]}: there is no such program.") from error


def run_and_wait(command: Sequence[str]) -> int:
    """Run a command as `in` would, in a process of its own, and return its status."""
    return subprocess.run(command, check=False).returncode
