"""One at a time: two commands that would build or change the same thing wait for each other."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from e2e.localcluster.console import say


@contextmanager
def locked(folder: Path, name: str) -> Iterator[None]:
    """Hold the lock of that name; the kernel frees it when the holder dies, however it dies."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{name}.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another command that works on {name}")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
