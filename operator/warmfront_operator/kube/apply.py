"""Children, by server-side apply. What is not ours is never written."""

from collections.abc import Mapping
from typing import Any, Final

from warmfront_api import names
from warmfront_operator.domain import resources
from warmfront_operator.domain.resources import Child, ChildKind, ServiceKey
from warmfront_operator.errors import NameTakenError, OperatorError, PredecessorError
from warmfront_operator.kube.client import Kube

Json = dict[str, Any]

UNKNOWN_FIELDS: Final = "unknown"  # holds the place of the hash, so that the second apply owns no field more than the first


async def apply_child(kube: Kube, kind: ChildKind, manifest: Mapping[str, Any], known: Child | None) -> Child:
    """Apply a child, and note on it which fields our manager held right after.

    The note is what a later change by somebody else is seen by. It is known only after an apply, so a new object or
    a new set of fields takes a second one.

    Args:
        kube: the API server.
        kind: which child.
        manifest: as rendered.
        known: the child as it stands; None: it has not been seen.

    Raises:
        NameTakenError: an object of that name belongs to somebody else.
        PredecessorError: it belongs to a deleted service of that name.
        KubeError: the API server refused, or did not answer.
    """
    owner = str(manifest["metadata"]["ownerReferences"][0]["uid"])
    current = known or await _standing(kube, kind, manifest)
    if current is not None and current.controller_uid != owner:
        raise _refusal(kind, current)
    noted = current.applied_fields if current and current.applied_fields else UNKNOWN_FIELDS
    applied = await _apply(kube, kind, manifest, noted)
    if applied.owned_fields == noted:
        return applied
    return await _apply(kube, kind, manifest, applied.owned_fields)


async def _standing(kube: Kube, kind: ChildKind, manifest: Mapping[str, Any]) -> Child | None:
    """The object of that name, with our label or without: only ours are watched."""
    metadata = manifest["metadata"]
    body = await kube.get(kind, ServiceKey(metadata["namespace"], metadata["name"]))
    return resources.child(kind, body) if body else None


async def _apply(kube: Kube, kind: ChildKind, manifest: Mapping[str, Any], fields: str) -> Child:
    metadata = manifest["metadata"]
    annotations = {**metadata["annotations"], names.ANNOTATION_APPLIED_FIELDS: fields}
    body: Json = {**manifest, "metadata": {**metadata, "annotations": annotations}}
    return resources.child(kind, await kube.apply(body, manager=names.FIELD_MANAGER))


def _refusal(kind: ChildKind, found: Child) -> OperatorError:
    if found.of_namesake:
        return PredecessorError(f"the {kind} {found.key.name} of a deleted InferenceService is still being removed")
    return NameTakenError(_taken(kind, found))


def _taken(kind: ChildKind, found: Child) -> str:
    owner = f"the controller {found.controller_uid}" if found.controller_uid else "nobody Warmfront knows"
    return (
        f"the {kind} {found.key.name} exists and belongs to {owner}: Warmfront does not touch it; "
        f"rename it, or give the InferenceService another name"
    )
