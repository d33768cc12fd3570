"""The children of a service, as they are applied. The Deployment never carries `replicas`: `/scale` owns them."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from warmfront_api import names
from warmfront_api.gateway_config import GATEWAY_CONFIG_FILE
from warmfront_api.inferenceservice import InferenceService
from warmfront_operator.domain import template
from warmfront_operator.domain.resources import ANNOTATION_SPEC_HASH, ChildKind, Deployment, digest
from warmfront_operator.domain.template import GatewayImage

Json = dict[str, Any]

NODE_WAIT_SECONDS: Final = 900  # a node pool that must grow first; a rollout that waits for it is not stuck

API_VERSIONS: Final[Mapping[ChildKind, str]] = {
    ChildKind.SERVICE_ACCOUNT: "v1",
    ChildKind.CONFIG_MAP: "v1",
    ChildKind.SERVICE: "v1",
    ChildKind.POD_DISRUPTION_BUDGET: "policy/v1",
    ChildKind.DEPLOYMENT: "apps/v1",
}

Renderer = Callable[[InferenceService, GatewayImage], Json]

# A Deployment keeps the revision that rendered it until its user changes the template: an upgrade rolls no GPU pod.
RENDERERS: Final[Mapping[str, Renderer]] = {template.REVISION: template.pod_template}


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """What the children depend on besides the spec."""

    gateway: GatewayImage
    revision: str = template.REVISION
    ready_pods: int = 0
    surge: bool = True


def spec_hash(service: InferenceService) -> str:
    """Hash of the user's part of the pod template. Defaults are left out: a release that adds a field changes no hash."""
    parts = {"model", "engine", "gateway", "warmup", "drain", "pod_template"}
    return digest(service.spec.model_dump(mode="json", by_alias=True, include=parts, exclude_defaults=True))


def pinned(inputs: Inputs, service: InferenceService, current: Deployment | None) -> Inputs:
    """The same inputs with the renderer and gateway image of the running template, while its user has not changed it."""
    if current is None or current.template.spec_hash != spec_hash(service) or not current.template.gateway_image:
        return inputs
    running = current.template
    gateway = GatewayImage(
        image=running.gateway_image or inputs.gateway.image,
        pull_policy=running.gateway_pull_policy or inputs.gateway.pull_policy,
    )
    revision = running.revision if running.revision in RENDERERS else inputs.revision
    return Inputs(gateway=gateway, revision=revision or inputs.revision, ready_pods=inputs.ready_pods, surge=inputs.surge)


def children(service: InferenceService, inputs: Inputs) -> dict[ChildKind, Json]:
    """All children in the order in which they are applied, each with the hash of its rendering as an annotation."""
    return {
        kind: _finish(service, kind, body)
        for kind, body in (
            (ChildKind.SERVICE_ACCOUNT, {"automountServiceAccountToken": False}),
            (ChildKind.CONFIG_MAP, _config_map(service)),
            (ChildKind.SERVICE, _service(service)),
            (ChildKind.POD_DISRUPTION_BUDGET, _disruption_budget(service, inputs.ready_pods)),
            (ChildKind.DEPLOYMENT, _deployment(service, inputs)),
        )
    }


def applied_hash(manifest: Json) -> str:
    """Hash of what was rendered, as it stands in the manifest's annotation."""
    return str(manifest["metadata"]["annotations"][names.ANNOTATION_APPLIED_HASH])


def owner_reference(service: InferenceService) -> Json:
    """Controller reference: garbage collection removes the children. Not blocking: that would need rights on our owner."""
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "name": service.name,
        "uid": service.uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }


def _finish(service: InferenceService, kind: ChildKind, body: Json) -> Json:
    annotations = body.pop("annotations", {})
    metadata: Json = {
        "name": service.name,
        "namespace": service.namespace,
        "labels": _labels(service),
        "ownerReferences": [owner_reference(service)],
    }
    manifest: Json = {"apiVersion": API_VERSIONS[kind], "kind": str(kind), "metadata": metadata, **body}
    rendered = digest({**manifest, "annotations": annotations})
    metadata["annotations"] = {**annotations, names.ANNOTATION_APPLIED_HASH: rendered}
    return manifest


def _labels(service: InferenceService) -> dict[str, str]:
    return {
        names.LABEL_NAME: names.APP_NAME,
        names.LABEL_MANAGED_BY: names.MANAGED_BY,
        names.LABEL_SERVICE: service.name,
    }


def _config_map(service: InferenceService) -> Json:
    content = json.dumps(template.gateway_config(service), indent=2, sort_keys=True)
    return {"data": {GATEWAY_CONFIG_FILE: content + "\n"}}


def _service(service: InferenceService) -> Json:
    port = {"name": "http", "port": 80, "targetPort": "http", "protocol": "TCP"}
    return {"spec": {"selector": template.selector(service), "ports": [port]}}


def _disruption_budget(service: InferenceService, ready_pods: int) -> Json:
    """At most one warm pod is evicted at a time.

    A number, because `maxUnavailable: 1` counts from `spec.replicas`: one pod that warms up would block every eviction.
    """
    return {
        "spec": {
            "minAvailable": max(0, ready_pods - 1),
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
            "selector": {"matchLabels": template.selector(service)},
        }
    }


def _deployment(service: InferenceService, inputs: Inputs) -> Json:
    return {
        "annotations": {
            ANNOTATION_SPEC_HASH: spec_hash(service),
            names.ANNOTATION_TEMPLATE_REVISION: inputs.revision,
        },
        "spec": {
            "selector": {"matchLabels": template.selector(service)},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": _rolling(surge=inputs.surge)},
            "revisionHistoryLimit": 3,
            "progressDeadlineSeconds": service.spec.warmup.timeout_seconds + NODE_WAIT_SECONDS,
            "template": RENDERERS[inputs.revision](service, inputs.gateway),
        },
    }


def _rolling(*, surge: bool) -> Json:
    """One more pod first where there is room for it, else one fewer: without a free GPU a surge pod waits for ever."""
    return {"maxSurge": 1, "maxUnavailable": 0} if surge else {"maxSurge": 0, "maxUnavailable": 1}
