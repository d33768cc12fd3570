"""Entering the cluster's namespaces.

Python 3.11 has no `os.setns`, so libc's is called. A thread that enters a network namespace makes its sockets there,
and a socket stays in the namespace in which it was made; the rest of the process is not touched.
"""

import ctypes
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from e2e.localcluster.errors import ClusterNotRunningError

CLONE_NEWNS = 0x00020000
CLONE_NEWNET = 0x40000000

_libc = ctypes.CDLL(None, use_errno=True)
T = TypeVar("T")


def enter(file: Path, kind: int) -> None:
    """Move the calling thread into a namespace; for a mount namespace the process must have no other thread.

    Raises:
        ClusterNotRunningError: there is no such namespace.
        OSError: the kernel refuses.
    """
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise ClusterNotRunningError("The cluster is not running. Start it with `make cluster-up`.") from error
    try:
        if _libc.setns(descriptor, kind):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(file))
    finally:
        os.close(descriptor)


def enter_process(pid: int) -> None:
    """Move this process, which must have one thread only, beside another: its network and its mounts."""
    here = Path.cwd()  # the kernel resets it to the root of the mounts entered
    enter(Path(f"/proc/{pid}/ns/net"), CLONE_NEWNET)
    enter(Path(f"/proc/{pid}/ns/mnt"), CLONE_NEWNS)
    os.chdir(here)


def call_in_network(namespace: Path, function: Callable[[], T]) -> T:
    """Run a function in a thread inside a network namespace and return its result or raise its error."""
    results: list[T] = []
    errors: list[BaseException] = []

    def body() -> None:
        try:
            enter(namespace, CLONE_NEWNET)
            results.append(function())
        except BaseException as error:  # noqa: BLE001 - carried over to the caller
            errors.append(error)

    thread = threading.Thread(target=body, daemon=True)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]
