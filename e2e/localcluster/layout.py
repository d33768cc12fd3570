"""Where everything lies: the cache that outlives clusters, and the folders of one cluster."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from e2e.localcluster.errors import LocalClusterError

REPOSITORY = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
RUN_ROOT = Path("/run/warmfront")
DEFAULT_NAME = "warmfront"

# Name of a folder and of a network namespace at once.
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?")


@dataclass(frozen=True, kw_only=True)
class Cache:
    """What is expensive to make and independent of any one cluster. `WARMFRONT_CACHE` moves it."""

    root: Path

    @property
    def binaries(self) -> Path:
        """The programs built from Go modules."""
        return self.root / "bin"

    @property
    def on_path(self) -> Path:
        """Links to the programs that commands inside find by name."""
        return self.binaries / "path"

    @property
    def go(self) -> Path:
        """Go's own module and build caches."""
        return self.root / "go"

    @property
    def images(self) -> Path:
        """Image archives, `NAME-KEY.tar`."""
        return self.root / "images"

    @property
    def buildah(self) -> Path:
        """Buildah's storage: the base image and the cached layers."""
        return self.root / "buildah"

    @property
    def pip(self) -> Path:
        """Pip's download cache during image builds."""
        return self.root / "pip"

    @property
    def python_tools(self) -> Path:
        """Virtual environments that hold one tool each."""
        return self.root / "python-tools"

    @property
    def clusters(self) -> Path:
        """One folder per cluster."""
        return self.root / "clusters"

    @property
    def locks(self) -> Path:
        """Lock files; outside what they guard, since that is removed whole."""
        return self.root / "locks"


@dataclass(frozen=True, kw_only=True)
class ClusterPaths:
    """The folders of one cluster. `data` may be large; `run` is short, for the sake of socket paths (108 bytes)."""

    name: str
    data: Path
    run: Path

    @property
    def network_namespace(self) -> str:
        """Named after the cluster, and recognisably ours."""
        return self.name if self.name == DEFAULT_NAME else f"warmfront-{self.name}"

    @property
    def network_namespace_file(self) -> Path:
        """Where `ip netns` keeps it."""
        return Path("/run/netns") / self.network_namespace

    @property
    def state_file(self) -> Path:
        """See `state.py`."""
        return self.data / "state.json"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's, with certificates inside."""
        return self.data / "kubeconfig"

    @property
    def audit_log(self) -> Path:
        """One JSON event a line, level Metadata, every request but those of the nodes."""
        return self.data / "audit.log"

    @property
    def pki(self) -> Path:
        """Certificates and keys."""
        return self.data / "pki"

    @property
    def logs(self) -> Path:
        """One file per component."""
        return self.data / "logs"

    @property
    def processes(self) -> Path:
        """One record per started process."""
        return self.data / "processes"

    def node(self, index: int) -> Path:
        """The data of one node."""
        return self.data / f"node-{index}"

    def node_run(self, index: int) -> Path:
        """Sockets and run-time state of one node."""
        return self.run / f"node-{index}"

    def containerd_socket(self, index: int) -> Path:
        """What the kubelet and `ctr` connect to."""
        return self.node_run(index) / "containerd.sock"


def cache(environment: Mapping[str, str] = os.environ) -> Cache:
    """The cache folder that the environment asks for."""
    chosen = environment.get("WARMFRONT_CACHE")
    return Cache(root=Path(chosen).resolve() if chosen else Path.home() / ".cache" / "warmfront")


def cluster_paths(where: Cache, environment: Mapping[str, str] = os.environ) -> ClusterPaths:
    """The folders of the cluster that `WARMFRONT_CLUSTER` names.

    Raises:
        LocalClusterError: the name cannot be the name of a folder and a network namespace.
    """
    name = environment.get("WARMFRONT_CLUSTER") or DEFAULT_NAME
    if not _NAME.fullmatch(name):
        raise LocalClusterError(
            f"WARMFRONT_CLUSTER={name!r} is no name for a cluster: use up to 32 lower-case letters, digits and inner dashes."
        )
    return ClusterPaths(name=name, data=where.clusters / name, run=RUN_ROOT / name)
