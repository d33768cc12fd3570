"""Running programs, with errors that show what the program said."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from e2e.localcluster.errors import CommandFailedError

PROXY_VARIABLES = ("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy")


def tail(text: str, lines: int = 25) -> str:
    """The last lines of a text, where errors are."""
    return "\n".join(text.rstrip().splitlines()[-lines:])


def run(
    arguments: Sequence[str | Path],
    *,
    environment: Mapping[str, str] | None = None,
    directory: Path | None = None,
    text_input: str | None = None,
) -> str:
    """Run a program to its end and return its standard output.

    Raises:
        CommandFailedError: it is not installed, or ended with an error; carries the end of its output.
    """
    words = [str(argument) for argument in arguments]
    try:
        done = subprocess.run(
            words, env=environment, cwd=directory, input=text_input, capture_output=True, text=True, errors="replace", check=False
        )
    except FileNotFoundError as error:
        raise CommandFailedError(f"{words[0]} is not installed; `python -m e2e.localcluster tools` installs it.") from error
    if done.returncode:
        raise CommandFailedError(f"{' '.join(words)}\nended with status {done.returncode}:\n{tail(done.stdout + done.stderr)}")
    return done.stdout


def succeeds(arguments: Sequence[str | Path]) -> bool:
    """Whether a program runs and ends well; what it says is dropped."""
    try:
        run(arguments)
    except CommandFailedError:
        return False
    return True


def without_proxies(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment less its proxies, which would catch requests to cluster addresses."""
    return {name: value for name, value in environment.items() if name.lower() not in PROXY_VARIABLES}
