"""Whether this machine can run the cluster. Each check tries the thing itself rather than reading versions."""

import os
import sys
from pathlib import Path

from e2e.localcluster.commands import succeeds
from e2e.localcluster.errors import LocalClusterError, UnsupportedMachineError
from e2e.localcluster.layout import Cache, ClusterPaths

_SOCKET_LIMIT_BYTES = 107  # of a unix socket's path, less the final zero


def require_linux_root() -> None:
    """Raises UnsupportedMachineError unless this is Linux and we are root."""
    if sys.platform != "linux":
        raise UnsupportedMachineError(f"The local cluster needs Linux; this is {sys.platform}.")
    if os.geteuid() != 0:
        raise UnsupportedMachineError("The local cluster needs root: it makes network namespaces, mounts and cgroups.")


def can_make_namespaces() -> bool:
    """Network and mount namespaces."""
    return succeeds(["unshare", "--net", "--mount", "true"])


def can_overlay(folder: Path) -> bool:
    """Whether an overlay can have its layers there; on a container's own overlay it cannot."""
    probe = folder / ".overlay-probe"
    for part in ("lower", "upper", "work", "merged"):
        (probe / part).mkdir(parents=True, exist_ok=True)
    options = f"lowerdir={probe}/lower,upperdir={probe}/upper,workdir={probe}/work"
    return succeeds(["unshare", "--mount", "mount", "-t", "overlay", "overlay", "-o", options, probe / "merged"])


def can_nftables() -> bool:
    """What kube-proxy needs: tables with address translation."""
    script = "nft add table ip probe && nft add chain ip probe nat '{ type nat hook prerouting priority 0; }'"
    return succeeds(["unshare", "--net", "sh", "-c", script])


def can_bridge() -> bool:
    """What joins the pods."""
    return succeeds(["unshare", "--net", "ip", "link", "add", "probe", "type", "bridge"])


def has_memory_cgroup() -> bool:
    """The memory controller, in either version."""
    unified = Path("/sys/fs/cgroup/cgroup.controllers")
    return Path("/sys/fs/cgroup/memory").is_dir() or (unified.exists() and "memory" in unified.read_text().split())


def require_kernel_features(where: Cache) -> None:
    """Raises UnsupportedMachineError with the first feature that is missing."""
    where.root.mkdir(parents=True, exist_ok=True)
    if not can_make_namespaces():
        raise UnsupportedMachineError(
            "This machine does not let us make network namespaces (a container without CAP_SYS_ADMIN?)."
        )
    if not can_overlay(where.root):
        raise UnsupportedMachineError(
            f"No overlay file system can be mounted below {where.root}: set WARMFRONT_CACHE to a folder on a disk (ext4, xfs)."
        )
    if not can_bridge():
        raise UnsupportedMachineError("The kernel has no network bridges (module `bridge`).")
    if not can_nftables():
        raise UnsupportedMachineError(
            "The kernel has no nftables with address translation (modules `nf_tables`, `nft_chain_nat`)."
        )
    if not has_memory_cgroup():
        raise UnsupportedMachineError("The memory cgroup is not there below /sys/fs/cgroup.")


def require_short_paths(paths: ClusterPaths) -> None:
    """Raises LocalClusterError when a socket of the kubelet would have too long a path."""
    longest = paths.node(9) / "kubelet/plugins_registry/driver.example.com-reg.sock"
    if len(os.fsencode(longest)) > _SOCKET_LIMIT_BYTES:
        raise LocalClusterError(f"{paths.data} is too long a path for unix sockets: set WARMFRONT_CACHE to a shorter one.")
