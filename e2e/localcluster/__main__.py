"""`python -m e2e.localcluster`: a real Kubernetes on this machine, in a network namespace of its own."""

import argparse
import os
import signal
import sys
from collections.abc import Callable, Sequence

from e2e.localcluster import cluster, machine, python_tools, tools
from e2e.localcluster.console import say, step
from e2e.localcluster.errors import LocalClusterError
from e2e.localcluster.golang import HELM, ensure_program
from e2e.localcluster.images import IMAGES
from e2e.localcluster.inside import (
    EXISTING,
    enter_cluster,
    environment_inside,
    existing_kubeconfig,
    go_home,
    replace_by,
    run_and_wait,
)
from e2e.localcluster.layout import Cache, ClusterPaths, cache, cluster_paths
from e2e.localcluster.locks import locked
from e2e.localcluster.network import MAX_NODES
from e2e.localcluster.relay import MAX_PORT, run_relay
from e2e.localcluster.state import Phase

_NOT_RUNNING = 3  # exit status of `status`, as with init scripts


def up(where: Cache, paths: ClusterPaths, options: argparse.Namespace) -> int:
    """Prepare everything, then start the cluster or mend it."""
    if existing_kubeconfig():
        say(f"{EXISTING} is set: that cluster is used, none is started")
        return 0
    machine.require_short_paths(paths)
    prepared = tools.prepare(where, options.images)
    with locked(where.locks, f"cluster-{paths.name}"), step(f"cluster {paths.name} is up"):
        cluster.up(paths, prepared.binary, prepared.archives, node_count=options.nodes, gpus=options.gpus)
    return 0


def down(where: Cache, paths: ClusterPaths, _options: argparse.Namespace) -> int:
    """Remove the cluster and every trace of it; the cache stays."""
    if existing_kubeconfig():
        say(f"{EXISTING} is set: that cluster is left as it is")
        return 0
    machine.require_linux_root()
    with locked(where.locks, f"cluster-{paths.name}"):
        if cluster.status(paths).phase is Phase.ABSENT:
            cluster.down(paths)  # processes or cgroups may be left without any record of a cluster
            say(f"there is no cluster {paths.name}")
        else:
            with step(f"removed the cluster {paths.name}"):
                cluster.down(paths)
    return 0


def status(_where: Cache, paths: ClusterPaths, _options: argparse.Namespace) -> int:
    """Say what is true now; the exit status is 0 for a running cluster."""
    seen = cluster.status(paths)
    print(cluster.describe(paths, seen))
    return 0 if seen.phase is Phase.RUNNING else _NOT_RUNNING


def inside(where: Cache, paths: ClusterPaths, command: Sequence[str]) -> int:
    """Become a command inside the cluster; with an existing cluster, beside it."""
    if existing := existing_kubeconfig():
        replace_by(command, {**os.environ, "KUBECONFIG": str(existing)})
    environment = environment_inside(where, paths)
    enter_cluster(paths)
    replace_by(command, environment)
    return 0


def in_(where: Cache, paths: ClusterPaths, options: argparse.Namespace) -> int:
    """`in -- COMMAND`."""
    return inside(where, paths, options.command)


def with_(where: Cache, paths: ClusterPaths, options: argparse.Namespace) -> int:
    """Run a command in the cluster, which is started for it, and removed after it unless it was there or KEEP is set."""
    there = bool(existing_kubeconfig()) or cluster.status(paths).phase is Phase.RUNNING
    up(where, paths, options)
    try:
        return run_and_wait([sys.executable, "-m", "e2e.localcluster", "in", "--", *options.command])
    finally:
        if not there and not os.environ.get("KEEP"):
            down(where, paths, options)


def kubectl(where: Cache, paths: ClusterPaths, options: argparse.Namespace) -> int:
    """Kubectl inside the cluster."""
    return inside(where, paths, [str(python_tools.kubectl(where)), *options.command])


def helm(where: Cache, paths: ClusterPaths, options: argparse.Namespace) -> int:
    """Helm inside the cluster."""
    return inside(where, paths, [str(ensure_program(where, HELM)), *options.command])


def relay(_where: Cache, paths: ClusterPaths, options: argparse.Namespace) -> int:
    """Relay a port of the machine's loopback into the cluster."""
    run_relay(paths, options.port, options.target, os.getpid())
    return 0


def images(where: Cache, _paths: ClusterPaths, options: argparse.Namespace) -> int:
    """Build the images, and beside them the programs; say how large the images are."""
    for archive in tools.prepare(where, options.images).archives:
        size_mb = archive.file.stat().st_size / 1e6
        print(f"{archive.reference:45} {size_mb:7.1f} MB  {archive.file}")
    return 0


def prepare_tools(where: Cache, _paths: ClusterPaths, _options: argparse.Namespace) -> int:
    """Install packages and build programs."""
    tools.check_machine(where)
    tools.ensure_programs(where)
    return 0


# name: (function, help, whether it makes or removes things and so must run in the machine's own namespaces)
Verb = Callable[[Cache, ClusterPaths, argparse.Namespace], int]
VERBS: dict[str, tuple[Verb, str, bool]] = {
    "up": (up, "start the cluster, or mend it; nothing happens where it runs", True),
    "down": (down, "remove the cluster and all it left", True),
    "status": (status, "say whether it runs (exit status 3 when not)", False),
    "in": (in_, "run a command inside: in -- COMMAND ...", True),
    "with": (with_, "the same, starting the cluster before and removing it after: with -- COMMAND ...", True),
    "kubectl": (kubectl, "kubectl inside", True),
    "helm": (helm, "Helm inside", True),
    "relay": (relay, "relay 127.0.0.1:PORT of the machine to ADDRESS:PORT or NAMESPACE/SERVICE:PORT inside", True),
    "images": (images, "build everything that a cluster needs: Debian packages, programs, images", True),
    "tools": (prepare_tools, "install Debian packages and build the programs", True),
}
_TAKE_COMMAND = ("in", "with", "kubectl", "helm")


def node_count(text: str) -> int:
    """A number of nodes that the addresses allow."""
    count = int(text)
    if not 1 <= count <= MAX_NODES:
        raise argparse.ArgumentTypeError(f"{count} is not between 1 and {MAX_NODES}")
    return count


def port_number(text: str) -> int:
    """A TCP port."""
    port = int(text)
    if not 1 <= port <= MAX_PORT:
        raise argparse.ArgumentTypeError(f"{port} is not between 1 and {MAX_PORT}")
    return port


def add_options(name: str, parser: argparse.ArgumentParser) -> None:
    """The options of one verb."""
    if name in ("up", "with"):
        parser.add_argument("--nodes", type=node_count, help="how many nodes (2)")
        parser.add_argument("--gpus", type=int, help="pretended GPUs per node (4)")
    if name in ("up", "with", "images"):
        names = ", ".join(image.name for image in IMAGES)
        parser.add_argument("--images", type=lambda text: text.split(","), help=f"which, separated by commas ({names}: all)")
    if name == "relay":
        parser.add_argument("port", type=port_number)
        parser.add_argument("target")


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the command line; what follows `--`, or the name of a wrapped program, is left as it is."""
    parser = argparse.ArgumentParser(prog="python -m e2e.localcluster", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for name, (_, help_text, _) in VERBS.items():
        add_options(name, verbs.add_parser(name, help=help_text))
    ours, command = split(list(arguments))
    options = parser.parse_args(ours)
    options.command = command
    if options.verb in ("in", "with") and not command:
        parser.error(f"{options.verb}: name a command, as in `{options.verb} -- kubectl get pods`")
    return options


def split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Our own arguments, and those of the command that we wrap."""
    if arguments and arguments[0] in ("kubectl", "helm"):
        rest = arguments[1:]
        return arguments[:1], rest[1:] if rest[:1] == ["--"] else rest
    if "--" in arguments and arguments[0] in _TAKE_COMMAND:
        cut = arguments.index("--")
        return arguments[:cut], arguments[cut + 1 :]
    if arguments and arguments[0] == "in":
        return arguments[:1], arguments[1:]
    return arguments, []


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; an error that the user can mend is printed without a traceback."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that drafts and containers of builds are cleared
    options = parse(sys.argv[1:] if arguments is None else arguments)
    run_verb, _, from_home = VERBS[options.verb]
    try:
        where = cache()
        if from_home:
            go_home(where)
        return run_verb(where, cluster_paths(where), options)
    except LocalClusterError as error:
        print(f"localcluster: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
