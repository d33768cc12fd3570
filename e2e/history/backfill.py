"""The edge of the backfill: writes the text and lets Debian's promtool make blocks of it."""

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from e2e.history.errors import BackfillError

# One block for the whole history: promtool reads the text once per block, and its default of two hours would
# read fifty megabytes a hundred times for ten days.
BLOCK_DURATION = "2400h"
TIMEOUT_SECONDS = 300.0


def make_blocks(lines: Iterable[str], target: Path) -> Path:
    """Write TSDB blocks of OpenMetrics lines into `target` (made new) and return it.

    Raises:
        BackfillError: promtool is missing, or refused the text; the message holds its words.
    """
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    text = target.with_suffix(".openmetrics")
    with text.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)
    try:
        _run_promtool(text, target)
    finally:
        text.unlink()
    return target


def _run_promtool(text: Path, target: Path) -> None:
    if shutil.which("promtool") is None:
        raise BackfillError("promtool is not on PATH: install the Debian package prometheus")
    command = ["promtool", "tsdb", "create-blocks-from", f"--max-block-duration={BLOCK_DURATION}", "-q", "openmetrics"]
    done = subprocess.run(
        [*command, str(text), str(target)], capture_output=True, text=True, check=False, timeout=TIMEOUT_SECONDS
    )
    if done.returncode != 0:
        raise BackfillError(f"promtool made no blocks of {text.name}: {done.stderr.strip() or done.stdout.strip()}")
