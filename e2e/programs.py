"""kubectl and Helm as a user runs them, on the test cluster or the one that WARMFRONT_KUBECONFIG names."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from typing import Final

_INSIDE: Final = "WARMFRONT_INSIDE"  # set by `python -m e2e.localcluster in`
_LONGEST_SECONDS: Final = 180.0


@dataclass(frozen=True, kw_only=True)
class Done:
    """How a program ended."""

    status: int
    stdout: str
    stderr: str


def _command(program: str) -> list[str]:
    """The program itself where the test already runs in the cluster's network, else by way of the cluster's own command."""
    if os.environ.get(_INSIDE) and shutil.which(program):
        return [program]
    return [sys.executable, "-m", "e2e.localcluster", program]


def attempt(program: str, *arguments: str, text_input: str | None = None) -> Done:
    """Run `kubectl` or `helm` to its end, whatever the end."""
    done = subprocess.run(
        [*_command(program), *arguments],
        input=text_input,
        capture_output=True,
        text=True,
        check=False,
        timeout=_LONGEST_SECONDS,
    )
    return Done(status=done.returncode, stdout=done.stdout, stderr=done.stderr)


def kubectl(*arguments: str, text_input: str | None = None) -> str:
    """Run kubectl, which must succeed. Returns what it printed.

    Raises:
        AssertionError: it failed; carries what it said.
    """
    return _successful("kubectl", *arguments, text_input=text_input)


def helm(*arguments: str, text_input: str | None = None) -> str:
    """Run Helm, which must succeed. Returns what it printed.

    Raises:
        AssertionError: it failed; carries what it said.
    """
    return _successful("helm", *arguments, text_input=text_input)


def _successful(program: str, *arguments: str, text_input: str | None) -> str:
    done = attempt(program, *arguments, text_input=text_input)
    assert done.status == 0, f"{program} {' '.join(arguments)}\n{done.stdout}{done.stderr}"
    return done.stdout
