"""Processes that outlive the command that started them, recorded so that no other process is ever taken for them."""

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from e2e.localcluster.errors import ClusterBrokenError

# In the environment of every process that we start and so of all that they start on the machine's side.
MARKER = "WARMFRONT_LOCALCLUSTER"


@dataclass(frozen=True, kw_only=True)
class Process:
    """A process, by what identifies it even after its number is used again or the machine has been restarted."""

    name: str
    pid: int
    start_ticks: int
    boot: str


def boot_id() -> str:
    """Differs after every start of the machine."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def start_ticks(pid: int) -> int | None:
    """When a process started, in clock ticks since the machine did; None when it is gone or only waits to be reaped."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()  # the name before it may hold anything
    return None if fields[0] in "ZX" else int(fields[19])


def alive(process: Process) -> bool:
    """Whether this very process still runs."""
    return process.boot == boot_id() and start_ticks(process.pid) == process.start_ticks


def identify(name: str, pid: int) -> Process:
    """The record of a running process.

    Raises:
        ClusterBrokenError: it has already ended.
    """
    ticks = start_ticks(pid)
    if ticks is None:
        raise ClusterBrokenError(f"{name} ended as soon as it was started.")
    return Process(name=name, pid=pid, start_ticks=ticks, boot=boot_id())


def record(folder: Path, process: Process) -> None:
    """Write a record, whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f".{process.name}.draft"
    draft.write_text(json.dumps(asdict(process)))
    draft.replace(folder / f"{process.name}.json")


def recorded(folder: Path) -> dict[str, Process]:
    """Every recorded process by name; a record that cannot be read counts as absent."""
    found = {}
    for file in sorted(folder.glob("*.json")):
        with contextlib.suppress(OSError, ValueError, TypeError):
            found[file.stem] = Process(**json.loads(file.read_text()))
    return found


def start(name: str, arguments: Sequence[str | Path], *, environment: Mapping[str, str], log: Path, folder: Path) -> Process:
    """Start a process in a session of its own, so that no signal of the terminal reaches it, and record it."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        child = subprocess.Popen(  # it must outlive us
            [str(argument) for argument in arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            start_new_session=True,
        )
    child.returncode = 0  # nobody waits for it, and no warning is due for that
    process = identify(name, child.pid)
    record(folder, process)
    return process


def ancestry() -> set[int]:
    """This process and those above it, which must never be killed."""
    found = set()
    pid = os.getpid()
    while pid > 0 and pid not in found:
        found.add(pid)
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            break
    return found


def all_pids() -> list[int]:
    """Every process of the machine."""
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def marked(value: str) -> set[int]:
    """The processes whose environment carries our marker with this value."""
    wanted = f"{MARKER}={value}".encode()
    found = set()
    for pid in all_pids():
        with contextlib.suppress(OSError):
            if wanted in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                found.add(pid)
    return found


def send(pids: Iterable[int], number: signal.Signals) -> None:
    """Signal processes, some of which may be gone."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def gone(pids: Iterable[int], seconds: float) -> bool:
    """Wait until none of these runs any more; False when time is up."""
    deadline = time.monotonic() + seconds
    while any(start_ticks(pid) is not None for pid in pids):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
