"""Events (events.k8s.io/v1). Of equal ones only the first is written, also by the operator's successor."""

import logging
import socket
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from warmfront_api import names
from warmfront_operator.domain.events import Event
from warmfront_operator.domain.resources import digest
from warmfront_operator.domain.text import clip
from warmfront_operator.errors import KubeError
from warmfront_operator.kube.client import Kube

LOG = logging.getLogger(__name__)

REPORTER: Final = f"{names.GROUP}/operator"
TOLD: Final = 20_000  # remembered; the name of each is made of what it tells, so the API server refuses a repetition anyway
CONFLICT: Final = 409


@dataclass
class Recorder:
    """Writes Events about services."""

    kube: Kube
    _told: OrderedDict[str, None] = field(default_factory=OrderedDict)

    async def record(self, service: Mapping[str, Any], events: Iterable[Event], now: datetime) -> None:
        """Write what has not been told. A failure is logged and not repeated: an Event is worth no retry."""
        for event in events:
            name = f"{service['metadata']['name']}.{digest(event.once)}"
            if name in self._told:
                continue
            self._remember(name)
            await self._write(_manifest(service, event, name, now))

    def _remember(self, name: str) -> None:
        self._told[name] = None
        if len(self._told) > TOLD:
            self._told.popitem(last=False)

    async def _write(self, manifest: dict[str, Any]) -> None:
        try:
            await self.kube.create(manifest)
        except KubeError as error:
            if error.status != CONFLICT:
                LOG.warning("an Event could not be written: %s", error)


def _manifest(service: Mapping[str, Any], event: Event, name: str, now: datetime) -> dict[str, Any]:
    metadata = service["metadata"]
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": metadata["namespace"]},
        "eventTime": now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "reportingController": REPORTER,
        "reportingInstance": socket.gethostname()[:128],
        "type": event.type,
        "reason": event.reason,
        "action": event.action,
        "note": clip(event.note),
        "regarding": {
            "apiVersion": names.API_VERSION,
            "kind": names.KIND,
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "uid": metadata["uid"],
        },
    }
