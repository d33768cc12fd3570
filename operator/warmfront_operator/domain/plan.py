"""What a pass writes: which children, how many replicas."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from warmfront_api.inferenceservice import InferenceService
from warmfront_api.scaling import ScalingMode
from warmfront_forecaster.planning.types import Decision
from warmfront_operator.domain.manifests import applied_hash
from warmfront_operator.domain.observation import rolling
from warmfront_operator.domain.resources import Child, ChildKind, Deployment, Pod

SURGE_PATIENCE: Final = timedelta(seconds=60)  # a free node takes seconds; after this there is no free GPU


def needs_apply(manifest: Mapping[str, Any], child: Child | None) -> bool:
    """Whether what stands differs from what was rendered.

    By hashes: values never compare equal (`1000m` reads back as `1`, defaults, webhooks). A field that somebody took
    from our manager shows in the fields that it holds. An object on its way out is left alone until it is gone.
    """
    if child is None:
        return True
    if child.deleting:
        return False
    return child.applied_hash != applied_hash(dict(manifest)) or child.owned_fields != child.applied_fields


def surge(deployment: Deployment | None, pods: Iterable[Pod], now: datetime) -> bool:
    """Whether a rollout may add a pod before it takes one away.

    Not once a pod of the new template has waited for a node for a minute, and then for the rest of that rollout: with
    every GPU in use it would wait for ever.
    """
    pods = tuple(pods)
    if deployment is None or not rolling(deployment, pods):
        return True
    fresh = (pod for pod in pods if pod.live and pod.template_hash == deployment.template.hash)
    waits = any(pod.unschedulable_since and now - pod.unschedulable_since >= SURGE_PATIENCE for pod in fresh)
    return deployment.surge and not waits


def replicas_to_write(service: InferenceService, deployment: Deployment, decision: Decision, *, created: bool) -> int | None:
    """The replicas to write through `/scale`; None: nothing to write.

    In Advisory a Deployment that was just created starts with `max(1, minReplicas)`; after that others rule.
    """
    if service.spec.scaling.mode is ScalingMode.ADVISORY:
        wanted = max(1, service.spec.scaling.min_replicas) if created else deployment.replicas
    else:
        wanted = decision.desired if decision.act else deployment.replicas
    return None if wanted == deployment.replicas else wanted


def order(manifests: Mapping[ChildKind, Any]) -> list[ChildKind]:
    """Kinds in the order of creation: a pod needs its account and configuration first."""
    return [kind for kind in ChildKind if kind in manifests]
