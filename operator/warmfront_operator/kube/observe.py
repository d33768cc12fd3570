"""What the watches have brought, corrected by what the operator itself has just written, and by lists."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, Generic, Protocol, TypeVar

from warmfront_api import names
from warmfront_operator.domain import resources
from warmfront_operator.domain.resources import Child, ChildKind, Pod, ServiceKey
from warmfront_operator.kube.client import Kube

Json = Mapping[str, Any]
Value = TypeVar("Value")
Value_co = TypeVar("Value_co", covariant=True)

OVERLAY: Final = timedelta(seconds=10)  # a watch that lags longer than this is broken; its reconnection brings the truth


class IndexView(Protocol[Value_co]):
    """The reading side of an index: the values under each key."""

    def __getitem__(self, key: ServiceKey, /) -> Collection[Value_co]: ...
    def __contains__(self, key: object, /) -> bool: ...
    def __iter__(self) -> Iterator[ServiceKey]: ...


@dataclass(frozen=True, kw_only=True)
class Indices:
    """All indices, filled by the watches."""

    services: IndexView[Json] = field(default_factory=dict)
    pods: IndexView[Pod] = field(default_factory=dict)
    children: Mapping[ChildKind, IndexView[Child]] = field(default_factory=lambda: {kind: {} for kind in ChildKind})


@dataclass(frozen=True)
class _Written(Generic[Value]):
    value: Value
    version: int
    time: datetime


@dataclass
class Overlay(Generic[Value]):
    """Answers to our own writes, until the watch has caught up with them."""

    _written: dict[tuple[str, ServiceKey], _Written[Value]] = field(default_factory=dict)

    def put(self, kind: str, key: ServiceKey, value: Value, version: int, now: datetime) -> None:
        """Remember what a write answered."""
        self._written[kind, key] = _Written(value, version, now)

    def newest(self, kind: str, key: ServiceKey, watched: Value | None, version: int, now: datetime) -> Value | None:
        """The newer of what was written and what was watched."""
        written = self._written.get((kind, key))
        if written is None:
            return watched
        if version >= written.version or now - written.time > OVERLAY:
            del self._written[kind, key]
            return watched
        return written.value

    def drop(self, key: ServiceKey) -> None:
        """Forget a service."""
        for entry in [entry for entry in self._written if entry[1] == key]:
            del self._written[entry]


@dataclass
class Observed:
    """The cluster as the operator knows it."""

    indices: Indices = field(default_factory=Indices)
    _children: Overlay[Child] = field(default_factory=Overlay)
    _services: Overlay[Json] = field(default_factory=Overlay)
    _ghosts: set[str] = field(default_factory=set)

    def keys(self) -> list[ServiceKey]:
        """All services that exist, in a steady order."""
        return sorted(key for key in self.indices.services if self._watched(self.indices.services, key))

    def service(self, key: ServiceKey, now: datetime) -> Json | None:
        """Raw body of a service; None when it is gone."""
        found = self._watched(self.indices.services, key)
        if not found:
            return None
        metadata = found[0]["metadata"]
        newest = self._services.newest(names.KIND, key, found[0], resources.version(metadata), now)
        return newest if newest is not None and newest["metadata"]["uid"] == metadata["uid"] else found[0]

    def child(self, kind: ChildKind, key: ServiceKey, now: datetime) -> Child | None:
        """A child by its name, whoever controls it; None when there is none with our label."""
        found = self._watched(self.indices.children[kind], key)
        watched = found[0] if found else None
        return self._children.newest(kind, key, watched, watched.version if watched else 0, now)

    def pods(self, key: ServiceKey) -> tuple[Pod, ...]:
        """Pods of a service, oldest first."""
        return tuple(sorted(self._watched(self.indices.pods, key), key=lambda pod: (pod.created, pod.name)))

    def wrote_child(self, child: Child, now: datetime) -> None:
        """Take the answer to our own write for what stands, until the watch brings it."""
        self._children.put(child.kind, child.key, child, child.version, now)

    def wrote_service(self, key: ServiceKey, body: Json, now: datetime) -> None:
        """The same for a service, after its status was written."""
        self._services.put(names.KIND, key, body, resources.version(body["metadata"]), now)

    def forget(self, key: ServiceKey) -> None:
        """Drop what was kept of a service that is gone."""
        self._children.drop(key)
        self._services.drop(key)

    def banish(self, uid: str) -> None:
        """This object is gone, although no watch has told so."""
        self._ghosts.add(uid)

    async def verify(self, kube: Kube, namespaces: Collection[str]) -> int:
        """List what there is, and drop what only the indices still have. Returns how many that were.

        After a watch has expired (410) kopf lists again, and tells nothing of what vanished in between.

        Raises:
            KubeError: a list failed; nothing was dropped for that kind.
        """
        ghosts: set[str] = set()
        for kind, label in ((names.KIND, ""), ("Pod", names.LABEL_SERVICE), *((str(k), names.LABEL_SERVICE) for k in ChildKind)):
            indexed = set(self._uids(kind))  # before the list: what appears meanwhile is no ghost
            if indexed:
                ghosts |= indexed - await _listed(kube, kind, namespaces, label)
        self._ghosts = ghosts
        return len(ghosts)

    def _uids(self, kind: str) -> Iterable[str]:
        if kind == names.KIND:
            index: IndexView[Any] = self.indices.services
            return [str(body["metadata"]["uid"]) for key in index for body in index[key]]
        index = self.indices.pods if kind == "Pod" else self.indices.children[ChildKind(kind)]
        return [str(item.uid) for key in index for item in index[key]]

    def _watched(self, index: IndexView[Value], key: ServiceKey) -> list[Value]:
        return [item for item in index[key] if _uid(item) not in self._ghosts] if key in index else []


def _uid(item: object) -> str:
    return str(item["metadata"]["uid"]) if isinstance(item, Mapping) else str(getattr(item, "uid", ""))


async def _listed(kube: Kube, kind: str, namespaces: Collection[str], label: str) -> set[str]:
    found: set[str] = set()
    for namespace in namespaces or (None,):
        found |= await kube.uids(kind, namespace=namespace, label=label)
    return found
