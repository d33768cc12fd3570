"""Who wrote what, from the API server's audit log (one JSON event a line)."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

WRITES: Final = frozenset({"create", "update", "patch", "delete", "deletecollection"})


@dataclass(frozen=True, kw_only=True)
class Write:
    """One write as it was asked for. `time` in unix seconds."""

    time: float
    user: str
    verb: str
    resource: str
    namespace: str
    name: str


def writes(log: Path, *, user_prefix: str, start: float, end: float) -> list[Write]:
    """Return the writes of the users of one prefix in a span of time (unix seconds), Lease renewals aside."""
    found = (write for write in _all_writes(log) if start <= write.time <= end)
    return [write for write in found if write.user.startswith(user_prefix) and write.resource != "leases"]


def _all_writes(log: Path) -> Iterator[Write]:
    with log.open(encoding="utf-8") as file:
        for line in file:
            event = json.loads(line)
            if event["verb"] in WRITES:
                yield _write(event)


def _write(event: dict[str, Any]) -> Write:
    reference = event.get("objectRef", {})
    resource = "/".join(filter(None, (reference.get("resource", ""), reference.get("subresource", ""))))
    return Write(
        time=datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp(),
        user=event["user"]["username"],
        verb=event["verb"],
        resource=resource,
        namespace=reference.get("namespace", ""),
        name=reference.get("name", ""),
    )
