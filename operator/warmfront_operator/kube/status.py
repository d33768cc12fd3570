"""The status subresource, by server-side apply under a manager of its own."""

from collections.abc import Mapping
from typing import Any

from warmfront_api import names
from warmfront_api.status import InferenceServiceStatus
from warmfront_operator.domain.resources import ServiceKey
from warmfront_operator.kube.client import Kube


async def write(kube: Kube, key: ServiceKey, status: InferenceServiceStatus) -> Mapping[str, Any]:
    """Apply the whole status: what is left out of it goes. Returns the service as it then stands.

    Raises:
        KubeError: the service is gone (404), the API server refused, or did not answer.
    """
    manifest = {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "metadata": {"name": key.name, "namespace": key.namespace},
        "status": status.to_wire(),
    }
    return await kube.apply(manifest, manager=names.FIELD_MANAGER_STATUS, subresource="status")
