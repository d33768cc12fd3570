"""The API server, through the asyncio client of the `kubernetes` package. Bodies are plain dicts; errors are ours."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from kubernetes.aio.client import ApiClient, ApiException, Configuration
from kubernetes.aio.dynamic import DynamicClient, Resource

from warmfront_api import names
from warmfront_operator.domain.resources import ServiceKey
from warmfront_operator.errors import KubeError
from warmfront_operator.metrics import API_WRITES

Json = dict[str, Any]

APPLY: Final = "application/apply-patch+yaml"
METADATA_ONLY: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
PAGE: Final = 500  # objects per page: some hundred KiB

# Known beforehand, so nothing is discovered: no calls at the start, no cache file on a read-only file system.
RESOURCES: Final[Mapping[str, tuple[str, str, str]]] = {
    names.KIND: (names.GROUP, names.VERSION, names.PLURAL),
    "Deployment": ("apps", "v1", "deployments"),
    "PodDisruptionBudget": ("policy", "v1", "poddisruptionbudgets"),
    "Event": ("events.k8s.io", "v1", "events"),
    "ConfigMap": ("", "v1", "configmaps"),
    "Service": ("", "v1", "services"),
    "ServiceAccount": ("", "v1", "serviceaccounts"),
    "Pod": ("", "v1", "pods"),
}


@dataclass(frozen=True, kw_only=True)
class Kube:
    """One connection pool to one API server."""

    client: DynamicClient
    timeout_seconds: float
    _resources: dict[str, Resource] = field(default_factory=dict, repr=False)

    @classmethod
    def connect(cls, configuration: Configuration, timeout_seconds: float) -> Self:
        """Make a client. Sends nothing yet."""
        client = DynamicClient(ApiClient(configuration))  # type: ignore[no-untyped-call]
        return cls(client=client, timeout_seconds=timeout_seconds)

    async def close(self) -> None:
        """Give the connections back."""
        await self.client.client.close()

    async def get(self, kind: str, key: ServiceKey) -> Json | None:
        """One object; None when it is not there.

        Raises:
            KubeError: another answer, or none.
        """
        try:
            return await self._request("get", self._path(kind, namespace=key.namespace, name=key.name))
        except KubeError as error:
            if error.status == 404:  # noqa: PLR2004 - not found
                return None
            raise

    async def served(self, kind: str) -> bool:
        """Whether the API server knows the kind.

        Raises:
            KubeError: no answer.
        """
        group, version, plural = RESOURCES[kind]
        try:
            found = await self._request("get", f"/apis/{group}/{version}")
        except KubeError as error:
            if error.status == 404:  # noqa: PLR2004 - not found
                return False
            raise
        return any(item.get("name") == plural for item in found.get("resources", ()))

    async def apply(self, manifest: Json, *, manager: str, subresource: str = "") -> Json:
        """Server-side apply, by force: a field that somebody else changed goes back. Unknown fields are refused.

        Raises:
            KubeError: the API server refused, or did not answer.
        """
        kind, metadata = str(manifest["kind"]), manifest["metadata"]
        path = self._path(kind, namespace=metadata["namespace"], name=metadata["name"], subresource=subresource)
        request = self._request("patch", path, body=manifest, content_type=APPLY, query_params=_apply_query(manager))
        return await self._counted(f"{kind}/{subresource}" if subresource else kind, "apply", request)

    async def scale(self, key: ServiceKey, replicas: int, *, manager: str) -> Json:
        """Write a Deployment's replicas through its scale subresource. Returns the Scale.

        By server-side apply too: of a merge patch the API server keeps no manager while nobody else has owned the field,
        and `managedFields` could not tell who scales. Whoever scales after us takes the field over without a conflict.

        Raises:
            KubeError: the API server refused, or did not answer.
        """
        metadata = {"name": key.name, "namespace": key.namespace}
        body: Json = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": metadata, "spec": {"replicas": replicas}}
        path = self._path("Deployment", namespace=key.namespace, name=key.name, subresource="scale")
        request = self._request("patch", path, body=body, content_type=APPLY, query_params=_apply_query(manager))
        return await self._counted("Deployment/scale", "apply", request)

    async def create(self, manifest: Json) -> Json:
        """Create an object.

        Raises:
            KubeError: it exists (409), was refused, or there was no answer.
        """
        kind, metadata = str(manifest["kind"]), manifest["metadata"]
        path = self._path(kind, namespace=str(metadata["namespace"]))
        return await self._counted(kind, "create", self._request("post", path, body=manifest))

    async def uids(self, kind: str, *, namespace: str | None, label: str = "") -> set[str]:
        """UIDs of all objects of a kind, by pages of metadata.

        Raises:
            KubeError: the API server refused, or did not answer.
        """
        found: set[str] = set()
        token: str | None = ""
        while token is not None:
            page = await self._page(kind, namespace, label, token)
            found.update(str(item["metadata"]["uid"]) for item in page.get("items", ()))
            token = page.get("metadata", {}).get("continue") or None
        return found

    async def _page(self, kind: str, namespace: str | None, label: str, token: str) -> Json:
        path = self._path(kind, namespace=namespace)
        options: Json = {"limit": PAGE, "header_params": {"Accept": METADATA_ONLY}}
        chosen = {"label_selector": label, "_continue": token}
        return await self._request("get", path, **options, **{key: value for key, value in chosen.items() if value})

    async def _counted(self, kind: str, verb: str, request: Any) -> Json:  # noqa: ANN401 - an awaitable of a dict
        try:
            answer: Json = await request
        except KubeError as error:
            API_WRITES.labels(kind, verb, str(error.status or "unanswered")).inc()
            raise
        API_WRITES.labels(kind, verb, "ok").inc()
        return answer

    async def _request(self, method: str, path: str, **options: Any) -> Json:  # noqa: ANN401 - the client's own options
        try:
            answer: Json = await self.client.request(
                method, path, serializer=_plain, _request_timeout=self.timeout_seconds, **options
            )
        except ApiException as error:
            raise KubeError(f"{method.upper()} {path}: {_message(error)}", status=error.status) from error
        except Exception as error:  # the client lets its transport's errors through, and they have no common base
            raise KubeError(f"{method.upper()} {path}: no answer ({type(error).__name__}: {error})") from error
        return answer

    def _path(self, kind: str, *, namespace: str | None, name: str | None = None, subresource: str = "") -> str:
        path = str(self._resource(kind).path(name=name, namespace=namespace))  # type: ignore[no-untyped-call]
        return f"{path}/{subresource}" if subresource else path

    def _resource(self, kind: str) -> Resource:
        if kind not in self._resources:
            group, version, plural = RESOURCES[kind]
            self._resources[kind] = Resource(  # type: ignore[no-untyped-call]
                prefix="apis" if group else "api",
                group=group,
                api_version=version,
                kind=kind,
                name=plural,
                namespaced=True,
                client=self.client,
            )
        return self._resources[kind]


def _apply_query(manager: str) -> list[tuple[str, str]]:
    return [("fieldManager", manager), ("force", "true"), ("fieldValidation", "Strict")]


def _plain(_client: object, data: Json) -> Json:
    return data


def _message(error: ApiException) -> str:
    """The API server's own sentence."""
    body = error.body.decode(errors="replace") if isinstance(error.body, bytes) else str(error.body or "")
    try:
        told = json.loads(body).get("message")
    except (ValueError, AttributeError):
        told = None
    return f"{error.status} {told or error.reason or body[:300]}"
