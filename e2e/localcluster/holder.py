"""The namespaces of a cluster: its network, and mounts that only it sees, kept by a sleeping process."""

from collections.abc import Sequence
from pathlib import Path

from e2e.localcluster import configs
from e2e.localcluster.api import wait_until
from e2e.localcluster.commands import run, tail, without_proxies
from e2e.localcluster.errors import ClusterNotRunningError
from e2e.localcluster.layout import ClusterPaths
from e2e.localcluster.network import API_ADDRESS, BRIDGE, SERVICE_RANGE
from e2e.localcluster.processes import MARKER, alive, recorded, start
from e2e.localcluster.sweep import FIXED_FOLDERS, make_fixed_folders

HOLDER = "namespaces"
MACHINE = "machine"


def recorded_pid(paths: ClusterPaths, name: str) -> int:
    """The number of a process of the cluster.

    Raises:
        ClusterNotRunningError: it does not run.
    """
    process = recorded(paths.processes).get(name)
    if process is None or not alive(process):
        raise ClusterNotRunningError(f"The cluster {paths.name} is not running. Start it with `make cluster-up`.")
    return process.pid


def environment(paths: ClusterPaths) -> dict[str, str]:
    """Of every process of the cluster: no proxies, and the marker by which `down` finds it."""
    return {**without_proxies(), MARKER: paths.name}


def ensure_way_home(paths: ClusterPaths) -> None:
    """A sleeping process in the machine's own namespaces, by which commands started inside the cluster find back to them.

    The machine's first process would be the obvious one to follow, but not everywhere may it be looked at.
    """
    process = recorded(paths.processes).get(MACHINE)
    if process is None or not alive(process):
        log = paths.logs / f"{MACHINE}.log"
        start(MACHINE, ["sleep", "infinity"], environment=environment(paths), log=log, folder=paths.processes)


def make_network(paths: ClusterPaths) -> None:
    """The namespace: loopback, an address that pods and processes share, and a route for services.

    An empty bridge carries the address, since not every kernel has dummy devices. Service addresses need a route, else they
    are unreachable before kube-proxy can rewrite them. There is no default route and no link to the machine: what is not in
    the cluster is unreachable at once.
    """
    namespace = paths.network_namespace
    run(["ip", "netns", "add", namespace])
    for words in (
        "link set lo up",
        f"link add {BRIDGE} type bridge",
        f"address add {API_ADDRESS}/32 dev {BRIDGE}",
        f"link set {BRIDGE} up",
        f"route add {SERVICE_RANGE} dev {BRIDGE}",
    ):
        run(["ip", "-netns", namespace, *words.split()])
    run(["nsenter", f"--net={paths.network_namespace_file}", "sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward"])


def holder_script(paths: ClusterPaths, targets: Sequence[Path]) -> str:
    """Mounts that only the cluster sees: its own folders at the fixed paths, and a resolver for its names."""
    lines = ["set -e"]
    for target in targets:
        source = paths.run / target.name
        source.mkdir(parents=True, exist_ok=True)
        lines.append(f"mount --bind '{source}' '{target}'")
    resolver = paths.data / "resolv.conf"
    resolver.write_text(configs.resolver())
    lines += [f"mount --bind '{resolver}' /etc/resolv.conf", f"touch '{paths.run}/mounted'", "exec sleep infinity"]
    return "\n".join(lines)


def make_namespaces(paths: ClusterPaths) -> None:
    """Network and mount namespaces, the latter kept by a sleeping process: mounts end with the last process inside."""
    make_fixed_folders()
    make_network(paths)
    script = holder_script(paths, FIXED_FOLDERS)
    words = ["nsenter", f"--net={paths.network_namespace_file}", "unshare", "--mount", "--propagation=slave", "sh", "-c", script]
    start(HOLDER, words, environment=environment(paths), log=paths.logs / f"{HOLDER}.log", folder=paths.processes)
    wait_until("the cluster's mounts", (paths.run / "mounted").exists, seconds=10, hint=lambda: log_tail(paths, HOLDER))


def log_tail(paths: ClusterPaths, name: str) -> str:
    """What a component said last."""
    try:
        return f"The end of {paths.logs / name}.log:\n{tail((paths.logs / f'{name}.log').read_text(errors='replace'))}"
    except OSError:
        return ""
