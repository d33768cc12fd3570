"""kubectl and Helm as a user runs them, on the test cluster or the one that WARMFRONT_KUBECONFIG names."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from typing import Final

from e2e.localcluster.inside import INSIDE
from e2e.support.errors import CommandError

TIMEOUT_SECONDS: Final = 180.0


@dataclass(frozen=True, kw_only=True)
class Done:
    """How a program ended."""

    status: int
    stdout: str
    stderr: str


def attempt(program: str, *arguments: str, stdin: str | None = None, seconds: float = TIMEOUT_SECONDS) -> Done:
    """Run `kubectl` or `helm` to its end, whatever the end.

    Raises:
        CommandError: It takes longer than `seconds`.
    """
    command = [*_command(program), *arguments]
    try:
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, timeout=seconds)
    except subprocess.TimeoutExpired as error:
        raise CommandError(f"`{_spoken(program, arguments)}` did not end within {seconds:.0f} s") from error
    return Done(status=done.returncode, stdout=done.stdout, stderr=done.stderr)


def run(program: str, *arguments: str, stdin: str | None = None) -> str:
    """Run `kubectl` or `helm`, which must succeed; returns what it printed.

    Raises:
        CommandError: As above, or it fails; the message holds what it said.
    """
    done = attempt(program, *arguments, stdin=stdin)
    if done.status != 0:
        raise CommandError(f"`{_spoken(program, arguments)}` failed: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def _command(program: str) -> list[str]:
    """The program itself where this already runs in the cluster's network, else by way of the cluster's own command."""
    if os.environ.get(INSIDE) and shutil.which(program):
        return [program]
    return [sys.executable, "-m", "e2e.localcluster", program]


def _spoken(program: str, arguments: tuple[str, ...]) -> str:
    return " ".join((program, *arguments))
