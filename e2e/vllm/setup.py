"""Builds the environment: virtual environment, packages, converted weights, marker."""

import ctypes
import fcntl
import json
import os
import platform
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from e2e.vllm.commands import run
from e2e.vllm.environment import CONVERTER, REQUIREMENTS, Environment, cache_root
from e2e.vllm.errors import UnfitMachineError

# Debian's own interpreter: the one that an image of the same Debian has at the same path.
DEBIAN_PYTHON: Final = Path("/usr/bin/python3.11")
NEEDED_BYTES: Final = 9 * 2**30  # 6.5 GB in the end, and the installer's downloads


def set_up(environment: Environment) -> None:
    """Build the environment, unless it is there. Safe to run again after any end, and beside another run of itself.

    Raises:
        UnfitMachineError: Something is missing that this does not bring.
        StepFailedError: A command failed.
    """
    environment.root.parent.mkdir(parents=True, exist_ok=True)
    with _alone(environment):
        if environment.is_ready:
            return
        python = _checked_machine(environment)
        _remove(environment.root)
        _build(environment, python)
        environment.marker.write_text(json.dumps(environment.stamp()))


def _build(environment: Environment, python: Path) -> None:
    environment.root.mkdir()
    log, began = environment.log, time.monotonic()
    run("1/3 virtual environment", [str(python), "-m", "venv", "--without-pip", str(environment.venv)], log=log)
    run("2/3 packages (3 GB to download the first time)", _installer(environment), log=log)
    offline = {"HF_HUB_OFFLINE": "1"}
    run("3/3 model", [str(environment.python), str(CONVERTER), str(environment.model)], log=log, env=offline)
    for file in environment.model.iterdir():
        file.chmod(0o644)  # safetensors writes for its owner only; a pod reads as another user
    print(f"vLLM is ready after {time.monotonic() - began:.0f} s in {environment.root}", flush=True)


def _installer(environment: Environment) -> list[str]:
    """uv, which `make setup` puts into the cache folder. It compiles to bytecode, because pods mount the folder read-only.

    Raises:
        UnfitMachineError: There is no uv.
    """
    uv = shutil.which("uv", path=os.pathsep.join((str(cache_root() / "uv" / "bin"), os.environ.get("PATH", os.defpath))))
    if uv is None:
        raise UnfitMachineError("uv is not there: run `make vllm-setup`, which brings it")
    packages = ["--no-deps", "--require-hashes", "-r", str(REQUIREMENTS)]
    return [uv, "pip", "install", "--python", str(environment.python), "--compile-bytecode", *packages]


def _checked_machine(environment: Environment) -> Path:
    """The interpreter to build on.

    Raises:
        UnfitMachineError: Another processor, no libnuma, too little room, or no Python 3.11.
    """
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        raise UnfitMachineError("the packages are those of Linux on x86-64: run the tests marked vllm there")
    try:
        ctypes.CDLL("libnuma.so.1")
    except OSError as error:
        raise UnfitMachineError("vLLM on CPU needs libnuma: apt-get install libnuma1") from error
    free = shutil.disk_usage(environment.root.parent).free
    if free < NEEDED_BYTES:
        raise UnfitMachineError(
            f"{environment.root.parent} has {free / 2**30:.1f} GiB free, the set-up needs {NEEDED_BYTES / 2**30:.0f}: "
            "make room, or set WARMFRONT_CACHE to a folder elsewhere"
        )
    return _python()


def _python() -> Path:
    if DEBIAN_PYTHON.exists():
        return DEBIAN_PYTHON
    if sys.version_info[:2] != (3, 11):
        raise UnfitMachineError("the locked packages are those of Python 3.11: run this with one")
    python = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    print(f"note: {DEBIAN_PYTHON} is not there, using {python}. A pod can use the environment only if its image has that path.")
    return python


@contextmanager
def _alone(environment: Environment) -> Iterator[None]:
    """One run at a time; the lock goes with the process, however it ends."""
    path = environment.root.with_name(environment.root.name + ".lock")
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _remove(root: Path) -> None:
    if root.exists():
        print(f"removing {root}: unfinished, or made by another recipe", flush=True)
        shutil.rmtree(root)
