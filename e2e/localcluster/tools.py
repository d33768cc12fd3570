"""Everything that the cluster needs before it can start: packages, programs, images, built beside each other."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from e2e.localcluster import machine, python_tools
from e2e.localcluster.golang import CLUSTER, HELM, ensure_program
from e2e.localcluster.images import ensure_images
from e2e.localcluster.layout import Cache
from e2e.localcluster.nodes import Archive
from e2e.localcluster.packages import ensure_packages


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """What is ready to be used."""

    binary: Path
    archives: Sequence[Archive]


def check_machine(where: Cache) -> None:
    """Packages first, since the checks use programs that they bring.

    Raises:
        UnsupportedMachineError: the cluster cannot run here.
    """
    machine.require_linux_root()
    ensure_packages()
    machine.require_kernel_features(where)


def link(folder: Path, name: str, target: Path) -> None:
    """Make a program findable by its plain name, for commands that run inside."""
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f".{name}.draft"
    draft.unlink(missing_ok=True)
    draft.symlink_to(target)
    draft.replace(folder / name)


def ensure_programs(where: Cache) -> Path:
    """The cluster's binary, Helm and kubectl, one after the other, since each build uses all cores; returns the first."""
    link(where.on_path, "kubectl", python_tools.kubectl(where))
    binary = ensure_program(where, CLUSTER)
    link(where.on_path, "helm", ensure_program(where, HELM))
    return binary


def prepare(where: Cache, image_names: Sequence[str] | None) -> Prepared:
    """Make everything that is missing; compiling and the downloads of the images go on beside each other.

    Args:
        where: the cache.
        image_names: which images; None for all.
    """
    check_machine(where)
    with ThreadPoolExecutor(max_workers=2) as pool:
        programs = pool.submit(ensure_programs, where)
        images = pool.submit(ensure_images, where, image_names)
        return Prepared(binary=programs.result(), archives=images.result())
