"""The base image, made locally: Debian 12 with its Python 3.11, standing in for the public `python:3.11-slim-bookworm`."""

import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

from e2e.localcluster.buildah import KEY_LABEL, Buildah
from e2e.localcluster.commands import run
from e2e.localcluster.console import step
from e2e.localcluster.digests import digest
from e2e.localcluster.errors import LocalClusterError
from e2e.localcluster.layout import HERE, Cache

BASE = "localhost/python:3.11-slim"
SUITE = "bookworm"
# libnuma1: real vLLM on CPU does not start without it.
PACKAGES = ("ca-certificates", "libnuma1", "python3", "python3-venv")
# Nothing that a running program reads: documents, translations, package lists, downloaded packages, logs.
TRIMMED = (
    "usr/share/doc",
    "usr/share/man",
    "usr/share/info",
    "usr/share/locale",
    "usr/share/lintian",
    "usr/share/pixmaps",
    "var/cache/apt",
    "var/cache/debconf",
    "var/lib/apt/lists",
    "var/log",
)
_FOLDERS_KEPT = ("var/cache/apt/archives/partial", "var/lib/apt/lists/partial", "var/cache/debconf", "var/log")


def base_key() -> str:
    """Made of the recipe: which packages, from which suite, less what."""
    return digest(HERE, [], [SUITE, *PACKAGES, *TRIMMED])


def mirror(targets: Iterable[str]) -> str | None:
    """The machine's Debian mirror for the suite, from lines `ADDRESS RELEASE COMPONENT` of apt."""
    for line in targets:
        words = line.split()
        if words[1:] == [SUITE, "main"] and words[0].startswith(("http://", "https://", "file:")):
            return words[0].rstrip("/")
    return None


def machine_mirror() -> str:
    """The same, asked of this machine's apt.

    Raises:
        LocalClusterError: apt knows none.
    """
    listing = run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)"])
    found = mirror(listing.splitlines())
    if found is None:
        raise LocalClusterError(
            f"apt has no source for {SUITE}/main, from which the base image is made: add one to /etc/apt/sources.list.d."
        )
    return found


def trim(tree: Path) -> None:
    """Remove what no program in a container reads."""
    for name in TRIMMED:
        shutil.rmtree(tree / name, ignore_errors=True)
    for name in _FOLDERS_KEPT:
        (tree / name).mkdir(parents=True, exist_ok=True)


def ensure_base(where: Cache, buildah: Buildah) -> None:
    """Make the base image unless the storage has it from this recipe.

    Raises:
        LocalClusterError: no mirror, or debootstrap failed.
    """
    if buildah.key_of(BASE) == base_key():
        return
    with (
        step("built the base image", announce="building the base image: about a minute, once"),
        tempfile.TemporaryDirectory(dir=where.root) as folder,
    ):
        tree = Path(folder) / "tree"
        run(["debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", SUITE, str(tree), machine_mirror()])
        trim(tree)
        tree.chmod(0o755)
        buildah.commit_tree(BASE, tree, {KEY_LABEL: base_key()}, ["--env", "LANG=C.UTF-8", "--cmd", "python3"])
