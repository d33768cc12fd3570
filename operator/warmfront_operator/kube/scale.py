"""Replicas, through the scale subresource and under a field manager of their own."""

from dataclasses import replace

from warmfront_api import names
from warmfront_operator.domain import resources
from warmfront_operator.domain.resources import Deployment
from warmfront_operator.kube.client import Kube


async def scale(kube: Kube, deployment: Deployment, replicas: int) -> Deployment:
    """Write the replicas: an absolute number, so writing it twice changes nothing. Returns the Deployment as it then is.

    Raises:
        KubeError: the API server refused, or did not answer.
    """
    answer = await kube.scale(deployment.key, replicas, manager=names.FIELD_MANAGER_SCALE)
    return replace(deployment, replicas=replicas, version=resources.version(answer["metadata"]))
