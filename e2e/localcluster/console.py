"""What the person at the terminal sees: each step with its seconds."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

_started = time.monotonic()
_lock = threading.Lock()  # steps run beside each other


def say(text: str) -> None:
    """Print one line with the seconds since the command began."""
    with _lock:
        print(f"[{time.monotonic() - _started:6.1f} s] {text}", flush=True)


@contextmanager
def step(what: str, *, announce: str | None = None) -> Iterator[None]:
    """Time a step and print it when it ends; `announce` is said at its start, for steps that one waits for."""
    if announce:
        say(announce)
    begin = time.monotonic()
    try:
        yield
    except BaseException:
        say(f"{what}: failed after {time.monotonic() - begin:.1f} s")
        raise
    say(f"{what}: {time.monotonic() - begin:.1f} s")
