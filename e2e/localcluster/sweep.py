"""Removing a cluster whole, in whatever state an earlier command or a crash left it. Every part may be absent."""

import contextlib
import shutil
import signal
import time
from pathlib import Path

from e2e.localcluster.commands import run, succeeds
from e2e.localcluster.errors import ClusterBrokenError
from e2e.localcluster.layout import RUN_ROOT, ClusterPaths
from e2e.localcluster.processes import alive, all_pids, ancestry, gone, marked, recorded, send

_KILL_SECONDS = 20.0
_CGROUP_SECONDS = 5.0
_CONTAINERS = "k8s.io"
CGROUPS = Path("/sys/fs/cgroup")
# Fixed paths of the kubelet and containerd. The cluster mounts its own folders there, in its own mount namespace only; where
# the machine has none, an empty one is made as the place to mount on, and noted to be removed with the last cluster.
FIXED_FOLDERS = (Path("/var/lib/kubelet"), Path("/var/log/containers"), Path("/run/containerd"))
_CREATED = RUN_ROOT / ".created"


def make_fixed_folders() -> None:
    """Make the places to mount on, and note which were not there."""
    RUN_ROOT.mkdir(parents=True, exist_ok=True)
    for folder in FIXED_FOLDERS:
        if not folder.exists():
            with _CREATED.open("a") as notes:
                notes.write(f"{folder}\n")
            folder.mkdir(parents=True)


def remove_fixed_folders() -> None:
    """With the last cluster gone remove what was made for it, unless something else moved in."""
    if not RUN_ROOT.is_dir() or any(entry.is_dir() for entry in RUN_ROOT.iterdir()):
        return
    if _CREATED.exists():
        for line in _CREATED.read_text().split():
            with contextlib.suppress(OSError):
                Path(line).rmdir()
    shutil.rmtree(RUN_ROOT, ignore_errors=True)


def cgroup_folders(paths: ClusterPaths, root: Path = CGROUPS) -> list[Path]:
    """The cgroups of the containers that the nodes' containerd still knows, in every hierarchy.

    They lie in the folder that containerd gives to containers of the namespace `k8s.io`, beside those of any other containerd.
    """
    tasks = [task.name for task in paths.run.glob(f"node-*/state/io.containerd.runtime.v2.task/{_CONTAINERS}/*")]
    return [folder / task for folder in shared_cgroups(root) for task in tasks if (folder / task).is_dir()]


def shared_cgroups(root: Path) -> list[Path]:
    """The folder of containerd in every hierarchy: the unified one's is the root, version 1 has one below it per controller."""
    hierarchies = [root, *(folder for folder in root.iterdir() if folder.is_dir())]
    return [hierarchy / _CONTAINERS for hierarchy in hierarchies if (hierarchy / _CONTAINERS).is_dir()]


def cgroup_pids(paths: ClusterPaths) -> set[int]:
    """The processes of every container of the cluster."""
    found: set[int] = set()
    for folder in cgroup_folders(paths):
        for file in folder.rglob("cgroup.procs"):
            with contextlib.suppress(OSError):
                found.update(map(int, file.read_text().split()))
    return found


def network_pids(file: Path) -> set[int]:
    """The processes in the cluster's network namespace: components, but also what was started with `in`."""
    try:
        wanted = file.stat()
    except OSError:
        return set()
    found = set()
    for pid in all_pids():
        with contextlib.suppress(OSError):
            seen = Path(f"/proc/{pid}/ns/net").stat()
            if (seen.st_dev, seen.st_ino) == (wanted.st_dev, wanted.st_ino):
                found.add(pid)
    return found


def is_root_below(folder: Path, mountinfo: str) -> bool:
    """Whether the root of a process is a container's: an overlay whose writable layer lies below a folder."""
    roots = [line for line in mountinfo.splitlines() if line.split()[4:5] == ["/"]]
    return any(f"upperdir={folder}/" in line for line in roots)


def container_pids(data: Path) -> set[int]:
    """The processes of every container whose file system lies in the cluster's folder, wherever its cgroup is."""
    found = set()
    for pid in all_pids():
        with contextlib.suppress(OSError):
            if is_root_below(data, Path(f"/proc/{pid}/mountinfo").read_text()):
                found.add(pid)
    return found


def processes_of(paths: ClusterPaths) -> set[int]:
    """Everything that belongs to the cluster, by each of the five traces that it leaves; never this command itself."""
    known = {process.pid for process in recorded(paths.processes).values() if alive(process)}
    found = known | marked(paths.name) | cgroup_pids(paths) | container_pids(paths.data)
    if paths.network_namespace_file.is_mount():
        found |= network_pids(paths.network_namespace_file)
    return found - ancestry()


def kill_all(paths: ClusterPaths) -> None:
    """Kill until nothing is left: a dying runtime may still start something.

    Raises:
        ClusterBrokenError: a process does not die.
    """
    deadline = time.monotonic() + _KILL_SECONDS
    while left := processes_of(paths):
        send(left, signal.SIGKILL)
        gone(left, 2.0)
        if time.monotonic() > deadline:
            raise ClusterBrokenError(
                f"These processes of the cluster do not die: {sorted(left)}. See what they wait for with `ps`, and try again."
            )


def unescape(field: str) -> str:
    """A path as /proc/mounts writes it, with octal escapes."""
    return field.encode().decode("unicode_escape")


def mounts_below(folder: Path, table: str) -> list[Path]:
    """The mount points below a folder, innermost first."""
    points = [Path(unescape(line.split()[1])) for line in table.splitlines() if line]
    return sorted((point for point in points if point.is_relative_to(folder)), reverse=True)


def unmount_all(paths: ClusterPaths) -> None:
    """Mounts of the cluster end with its mount namespace; this is for what may have been made outside it."""
    table = Path("/proc/self/mounts").read_text()
    for folder in (paths.data, paths.run):
        for point in mounts_below(folder, table):
            run(["umount", "--lazy", point])


def remove_network(paths: ClusterPaths) -> None:
    """Bridges, addresses, routes and the tables of kube-proxy go with their namespace."""
    if paths.network_namespace_file.exists() and not succeeds(["ip", "netns", "delete", paths.network_namespace]):
        paths.network_namespace_file.unlink(missing_ok=True)


def remove_cgroups(paths: ClusterPaths, root: Path = CGROUPS) -> None:
    """Innermost first; the kernel frees a cgroup a moment after its last process. An empty folder of containerd's goes too.

    Raises:
        ClusterBrokenError: one does not go.
    """
    deadline = time.monotonic() + _CGROUP_SECONDS
    while folders := cgroup_folders(paths, root):
        if time.monotonic() > deadline:
            raise ClusterBrokenError(f"These cgroups cannot be removed: {', '.join(map(str, folders))}")
        for folder in folders:
            inner = [child for child in folder.rglob("*") if child.is_dir()]
            for child in (*sorted(inner, reverse=True), folder):
                with contextlib.suppress(OSError):
                    child.rmdir()
        time.sleep(0.02)
    for folder in shared_cgroups(root):
        with contextlib.suppress(OSError):
            folder.rmdir()


def sweep(paths: ClusterPaths) -> None:
    """Remove every trace of the cluster.

    Raises:
        ClusterBrokenError: something does not go; the message says what.
    """
    kill_all(paths)
    unmount_all(paths)
    remove_network(paths)
    remove_cgroups(paths)
    for folder in (paths.data, paths.run):
        if folder.exists():
            shutil.rmtree(folder)
    remove_fixed_folders()
