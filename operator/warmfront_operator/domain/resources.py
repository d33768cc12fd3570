"""What the operator keeps of the objects that it watches: small frozen views, made from raw bodies."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, NamedTuple

from warmfront_api import names

Raw = Mapping[str, Any]
CRASH_LOOP: Final = "CrashLoopBackOff"
CRASHES: Final = 2  # one restart may be chance
IMAGE_TROUBLE: Final = frozenset({"ImagePullBackOff", "ErrImagePull", "InvalidImageName", "ErrImageNeverPull"})
CONFIG_TROUBLE: Final = frozenset({"CreateContainerConfigError", "CreateContainerError"})
HASH_CHARACTERS: Final = 16  # 64 bits: two renderings of one object never meet by chance

ANNOTATION_TEMPLATE_HASH: Final = f"{names.GROUP}/template-hash"  # on the pod template: which rendering a pod is of
ANNOTATION_SPEC_HASH: Final = f"{names.GROUP}/spec-hash"  # on the Deployment: the user's part of the template


class ServiceKey(NamedTuple):
    """Which InferenceService."""

    namespace: str
    name: str


class ChildKind(StrEnum):
    """What one InferenceService is made of, in the order of creation."""

    SERVICE_ACCOUNT = "ServiceAccount"
    CONFIG_MAP = "ConfigMap"
    SERVICE = "Service"
    POD_DISRUPTION_BUDGET = "PodDisruptionBudget"
    DEPLOYMENT = "Deployment"


@dataclass(frozen=True, kw_only=True)
class Child:
    """A child as it stands. `owned_fields` is the hash of the fields that our manager holds now."""

    kind: ChildKind
    key: ServiceKey
    uid: str
    version: int
    controller_uid: str | None
    of_namesake: bool  # controlled by an InferenceService of this name: this one, or one that was deleted
    deleting: bool
    applied_hash: str | None
    applied_fields: str | None
    owned_fields: str


@dataclass(frozen=True, kw_only=True)
class Template:
    """The pod template of a Deployment as it stands, as far as a new operator must keep it."""

    hash: str | None = None
    spec_hash: str | None = None
    revision: str | None = None
    gateway_image: str | None = None
    gateway_pull_policy: str | None = None


@dataclass(frozen=True, kw_only=True)
class Deployment(Child):
    """The Deployment child. `replicas` is its own `.spec.replicas`."""

    replicas: int
    total: int
    template: Template
    surge: bool = True
    stuck: str = ""  # message of an exceeded progress deadline
    failure: str = ""  # message of pods that were refused (quota, admission)


@dataclass(frozen=True, kw_only=True)
class Pod:
    """A pod of a service."""

    uid: str
    name: str
    created: datetime
    ready: bool
    ready_since: datetime | None
    unschedulable_since: datetime | None
    unschedulable: str  # the scheduler's message; "" when it has a node
    deleting: bool
    finished: bool
    restarts: int
    template_hash: str | None
    trouble: str = ""  # what keeps a container from running, and what to check; "" when none is known

    @property
    def live(self) -> bool:
        """Counts as a replica."""
        return not self.deleting and not self.finished


def digest(value: object) -> str:
    """Hash of a JSON value; key order does not matter."""
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()[:HASH_CHARACTERS]


def timestamp(text: str | None) -> datetime | None:
    """A Kubernetes time; None when absent."""
    return datetime.fromisoformat(text) if text else None


def owned_fields(metadata: Raw) -> str:
    """Hash of the fields that our manager holds. It changes when somebody else takes one from it."""
    ours = [
        entry.get("fieldsV1", {})
        for entry in metadata.get("managedFields") or ()
        if entry.get("manager") == names.FIELD_MANAGER and entry.get("operation") == "Apply" and not entry.get("subresource")
    ]
    return digest(ours)


def controller_of(metadata: Raw) -> Raw:
    """The owner reference of the controller; empty without one."""
    owners = metadata.get("ownerReferences") or ()
    return next((owner for owner in owners if owner.get("controller")), {})


def _is_service(controller: Raw, name: str) -> bool:
    wanted = (names.API_VERSION, names.KIND, name)
    return (controller.get("apiVersion"), controller.get("kind"), controller.get("name")) == wanted


def service_key(metadata: Raw) -> ServiceKey:
    """The service that an object belongs to, by our label."""
    return ServiceKey(str(metadata["namespace"]), str((metadata.get("labels") or {}).get(names.LABEL_SERVICE, "")))


def _common(kind: ChildKind, body: Raw) -> dict[str, Any]:
    metadata = body["metadata"]
    annotations, controller = metadata.get("annotations") or {}, controller_of(metadata)
    return {
        "kind": kind,
        "key": ServiceKey(str(metadata["namespace"]), str(metadata["name"])),
        "uid": str(metadata["uid"]),
        "version": version(metadata),
        "controller_uid": controller.get("uid"),
        "of_namesake": _is_service(controller, str(metadata["name"])),
        "deleting": bool(metadata.get("deletionTimestamp")),
        "applied_hash": annotations.get(names.ANNOTATION_APPLIED_HASH),
        "applied_fields": annotations.get(names.ANNOTATION_APPLIED_FIELDS),
        "owned_fields": owned_fields(metadata),
    }


def version(metadata: Raw) -> int:
    """Resource version as a number (comparable from Kubernetes 1.35 on, and in etcd ever since); 0 when it is not one."""
    text = str(metadata.get("resourceVersion", ""))
    return int(text) if text.isdecimal() else 0


def child(kind: ChildKind, body: Raw) -> Child:
    """View of a child's raw body."""
    return deployment(body) if kind is ChildKind.DEPLOYMENT else Child(**_common(kind, body))


def deployment(body: Raw) -> Deployment:
    """View of a Deployment's raw body."""
    spec, status = body.get("spec") or {}, body.get("status") or {}
    conditions = {str(item["type"]): item for item in status.get("conditions") or ()}
    progressing, failure = conditions.get("Progressing", {}), conditions.get("ReplicaFailure", {})
    surge = ((spec.get("strategy") or {}).get("rollingUpdate") or {}).get("maxSurge")
    return Deployment(
        **_common(ChildKind.DEPLOYMENT, body),
        replicas=int(spec.get("replicas", 1)),
        total=int(status.get("replicas", 0)),
        template=_template(body),
        surge=surge != 0,
        stuck=str(progressing.get("message", "")) if progressing.get("reason") == "ProgressDeadlineExceeded" else "",
        failure=str(failure.get("message", "")) if failure.get("status") == "True" else "",
    )


def _template(body: Raw) -> Template:
    on_deployment = body["metadata"].get("annotations") or {}
    template = (body.get("spec") or {}).get("template") or {}
    on_pod = (template.get("metadata") or {}).get("annotations") or {}
    containers = (template.get("spec") or {}).get("containers") or ()
    gateway: Raw = next((item for item in containers if item.get("name") == names.CONTAINER_GATEWAY), {})
    return Template(
        hash=on_pod.get(ANNOTATION_TEMPLATE_HASH),
        spec_hash=on_deployment.get(ANNOTATION_SPEC_HASH),
        revision=on_deployment.get(names.ANNOTATION_TEMPLATE_REVISION),
        gateway_image=gateway.get("image"),
        gateway_pull_policy=gateway.get("imagePullPolicy"),
    )


def pod(body: Raw) -> Pod:
    """View of a pod's raw body."""
    metadata, status = body["metadata"], body.get("status") or {}
    conditions = {str(item["type"]): item for item in status.get("conditions") or ()}
    ready, scheduled = conditions.get("Ready", {}), conditions.get("PodScheduled", {})
    is_ready, is_stuck = ready.get("status") == "True", scheduled.get("reason") == "Unschedulable"
    containers = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    return Pod(
        uid=str(metadata["uid"]),
        name=str(metadata["name"]),
        created=datetime.fromisoformat(metadata["creationTimestamp"]),
        ready=is_ready,
        ready_since=timestamp(ready.get("lastTransitionTime")) if is_ready else None,
        unschedulable_since=timestamp(scheduled.get("lastTransitionTime")) if is_stuck else None,
        unschedulable=str(scheduled.get("message") or "no node has room") if is_stuck else "",
        deleting=bool(metadata.get("deletionTimestamp")),
        finished=status.get("phase") in ("Succeeded", "Failed"),
        restarts=sum(int(item.get("restartCount", 0)) for item in containers),
        template_hash=(metadata.get("annotations") or {}).get(ANNOTATION_TEMPLATE_HASH),
        trouble="" if is_ready else next(filter(None, map(_trouble, containers)), ""),
    )


def _trouble(container: Raw) -> str:
    """What keeps a container from running, and what to check. A crash counts until the pod is ready.

    A container that crashes runs in between: told only while it waits, the trouble would come and go with each restart.
    """
    name, waiting = str(container.get("name", "")), (container.get("state") or {}).get("waiting") or {}
    reason, message = str(waiting.get("reason", "")), str(waiting.get("message", ""))
    if reason in IMAGE_TROUBLE or reason in CONFIG_TROUBLE:
        return f"container {name}: {reason}: {message or 'no message'}; {_advice(name, reason)}"
    ended = (container.get("lastState") or {}).get("terminated") or {}
    if reason != CRASH_LOOP and not (ended and int(container.get("restartCount", 0)) >= CRASHES):
        return ""
    how = f" ({ended.get('reason', 'Error')}, exit code {ended.get('exitCode')})" if ended else ""
    return f"container {name}: {CRASH_LOOP}: it ends again and again{how}; check its log (kubectl logs --previous -c {name})"


def _advice(container: str, reason: str) -> str:
    if reason in CONFIG_TROUBLE:
        return "check the Secrets and ConfigMaps that it names"
    images = {names.CONTAINER_ENGINE: "engine.image", names.CONTAINER_GATEWAY: "the chart's gateway.image"}
    return f"check {images.get(container, 'its image')} and the pull secret"
