"""Runs the commands of the set-up: output to a log, a sign of life on the terminal, the last words on failure."""

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from e2e.vllm.errors import StepFailedError

BEAT_SECONDS: Final = 15.0


def run(title: str, command: Sequence[str], *, log: Path, env: Mapping[str, str] | None = None) -> None:
    """Run one command to its end, and say how long it takes.

    Raises:
        StepFailedError: It ended with another status than 0.
    """
    began = time.monotonic()
    print(f"{title} ...", flush=True)
    with log.open("a") as output:
        output.write(f"\n$ {' '.join(command)}\n")
        output.flush()
        status = _wait(command, {**os.environ, **(env or {})}, output.fileno(), began)
    if status != 0:
        raise StepFailedError(f"{title}: failed with status {status}. The end of {log}:\n{_tail(log)}")
    print(f"{title}: {time.monotonic() - began:.0f} s", flush=True)


def _wait(command: Sequence[str], env: Mapping[str, str], output: int, began: float) -> int:
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=env) as process:
        try:
            while True:
                try:
                    return process.wait(timeout=BEAT_SECONDS)
                except subprocess.TimeoutExpired:
                    print(f"  ... {time.monotonic() - began:.0f} s", flush=True)
        except BaseException:
            process.terminate()
            raise


def _tail(log: Path, *, lines: int = 20) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
