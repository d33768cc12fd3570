"""The result log: one JSON line per request, written as it ends."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from e2e.load.player import Record
from e2e.load.records import RequestRecord


@contextmanager
def result_log(path: Path, *also: Record) -> Iterator[Record]:
    """Open a new log; the value writes one record to it (flushed: a crash loses none) and hands it to `also`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:

        def write(record: RequestRecord) -> None:
            file.write(record.to_line() + "\n")
            file.flush()
            for take in also:
                take(record)

        yield write


def read_log(path: Path) -> list[RequestRecord]:
    """Read a result log back."""
    return [RequestRecord.from_line(line) for line in path.read_text(encoding="utf-8").splitlines()]
