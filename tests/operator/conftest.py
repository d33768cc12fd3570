"""Builders of what the operator sees, and an API server in memory."""

from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from kubernetes.aio.client import Configuration

from tests.operator.facts import make_facts
from warmfront_api import names
from warmfront_operator.domain import resources
from warmfront_operator.domain.parsing import parse_service
from warmfront_operator.domain.resources import ChildKind, Deployment, Pod, ServiceKey
from warmfront_operator.kube.client import Kube
from warmfront_operator.kube.observe import Indices, Observed

__all__ = ["make_facts"]  # a fixture

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
UID = "0d5c4f8e-0000-4000-8000-000000000001"
PLURALS = {
    "inferenceservices": "InferenceService",
    "deployments": "Deployment",
    "poddisruptionbudgets": "PodDisruptionBudget",
    "events": "Event",
    "configmaps": "ConfigMap",
    "services": "Service",
    "serviceaccounts": "ServiceAccount",
    "pods": "Pod",
}


@pytest.fixture
def now() -> datetime:
    return NOW


def spec_body(**changes: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "model": {"name": "llama", "source": "hf://meta-llama/Llama-3.1-8B-Instruct"},
        "engine": {"image": "vllm/vllm-openai:v0.33.0", "resources": {"limits": {"nvidia.com/gpu": 1}}},
        "scaling": {
            "minReplicas": 1,
            "maxReplicas": 8,
            "capacity": {"prefillTokensPerSecond": 10_000, "decodeTokensPerSecond": 1_000, "targetUtilizationPercent": 50},
            "predictive": {"mode": "Active"},
        },
    }
    for path, value in changes.items():
        *parents, last = path.split("__")
        target = spec
        for parent in parents:
            target = target.setdefault(parent, {})
        target[last] = value
    return spec


@pytest.fixture
def raw_service() -> Callable[..., dict[str, Any]]:
    """Raw body of a service; `scaling__maxReplicas=3` sets a field of the spec."""

    def build(*, name: str = "chat", uid: str = UID, generation: int = 1, **changes: Any) -> dict[str, Any]:
        metadata = {"name": name, "namespace": "ml", "uid": uid, "generation": generation, "resourceVersion": "10"}
        body = {"apiVersion": names.API_VERSION, "kind": names.KIND, "metadata": metadata, "spec": spec_body(**changes)}
        return body | {"status": {"observedGeneration": -1}}

    return build


@pytest.fixture
def make_service(raw_service: Callable[..., dict[str, Any]]) -> Callable[..., Any]:
    return lambda **changes: parse_service(raw_service(**changes))


@pytest.fixture
def make_pod() -> Callable[..., Pod]:
    """A pod, created `age` seconds ago; warm `ready_after` seconds after its creation."""

    def build(name: str = "chat-1", *, age: float = 600, ready_after: float | None = 100, **fields: Any) -> Pod:
        created = NOW - timedelta(seconds=age)
        values: dict[str, Any] = {
            "uid": f"uid-{name}",
            "name": name,
            "created": created,
            "ready": ready_after is not None,
            "ready_since": None if ready_after is None else created + timedelta(seconds=ready_after),
            "unschedulable_since": None,
            "unschedulable": "",
            "deleting": False,
            "finished": False,
            "restarts": 0,
            "template_hash": "t1",
        }
        return Pod(**{**values, **fields})

    return build


@pytest.fixture
def make_deployment() -> Callable[..., Deployment]:
    def build(**fields: Any) -> Deployment:
        values: dict[str, Any] = {
            "kind": ChildKind.DEPLOYMENT,
            "key": ServiceKey("ml", "chat"),
            "uid": "uid-deployment",
            "version": 20,
            "controller_uid": UID,
            "of_namesake": True,
            "deleting": False,
            "applied_hash": "h",
            "applied_fields": "f",
            "owned_fields": "f",
            "replicas": 1,
            "total": 1,
            "template": resources.Template(hash="t1"),
        }
        return Deployment(**{**values, **fields})

    return build


def fields_v1(body: Any) -> Any:
    """A rough fieldsV1: which paths a manifest holds."""
    if not isinstance(body, dict):
        return {}
    return {f"f:{key}": fields_v1(value) for key, value in body.items() if key not in ("apiVersion", "kind", "name", "namespace")}


class FakeApi:
    """Enough of an API server: objects in memory, server-side apply with field ownership, scale, status, lists.

    `refuse` maps (method, kind) to a status to answer with. `writes` counts what came in other than reads.
    """

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str, str], dict[str, Any]] = {}
        self.writes: list[tuple[str, str, str]] = []
        self.queries: list[dict[str, str]] = []
        self.refuse: dict[tuple[str, str], int] = {}
        self.version = 100

    def put(self, body: dict[str, Any]) -> dict[str, Any]:
        metadata = body["metadata"]
        self.version += 1
        stored = {**body, "metadata": {"uid": f"uid-{self.version}", **metadata, "resourceVersion": str(self.version)}}
        self.objects[body["kind"], metadata["namespace"], metadata["name"]] = stored
        return stored

    def get(self, kind: str, name: str = "chat") -> dict[str, Any]:
        return self.objects[kind, "ml", name]

    def observed(self, pods: tuple[Pod, ...] = ()) -> Observed:
        """What watches would have brought by now: everything."""
        children: dict[ChildKind, dict[ServiceKey, list[Any]]] = {kind: {} for kind in ChildKind}
        services: dict[ServiceKey, list[Any]] = {}
        for (kind, namespace, name), body in self.objects.items():
            if kind == names.KIND:
                services[ServiceKey(namespace, name)] = [body]
            elif kind in set(ChildKind) and names.LABEL_SERVICE in (body["metadata"].get("labels") or {}):
                children[ChildKind(kind)][ServiceKey(namespace, name)] = [resources.child(ChildKind(kind), body)]
        of_chat = {ServiceKey("ml", "chat"): list(pods)} if pods else {}
        return Observed(indices=Indices(services=services, pods=of_chat, children=children))

    def events(self) -> list[str]:
        return [body["reason"] for (kind, _, _), body in self.objects.items() if kind == "Event"]

    async def handle(self, request: web.Request) -> web.Response:
        parts = [part for part in request.path.split("/") if part]
        parts = parts[2:] if parts[0] == "api" else parts[3:]
        if not parts:
            return web.json_response({"resources": [{"name": "inferenceservices"}]})
        namespace, plural, *rest = parts[1:] if parts[0] == "namespaces" else ("", parts[0])
        kind, name, subresource = PLURALS[plural], (rest or [""])[0], (rest[1:] or [""])[0]
        if request.method != "GET":
            self.writes.append((request.method, f"{kind}/{subresource}" if subresource else kind, name))
            self.queries.append(dict(request.query))
        if refused := self.refuse.get((request.method, f"{kind}/{subresource}" if subresource else kind)):
            return web.json_response({"message": f"{kind} is refused"}, status=refused)
        body = None if request.method == "GET" else await request.json()
        return self._answer(request, kind, (kind, namespace, name), subresource, body)

    def _answer(self, request: web.Request, kind: str, at: tuple[str, str, str], sub: str, body: Any) -> web.Response:
        found = self.objects.get(at)
        if request.method == "POST":
            return self._create(body)
        if request.method == "GET" and not at[2]:
            items = [{"metadata": listed["metadata"]} for (of, *_), listed in self.objects.items() if of == kind]
            return web.json_response({"items": items, "metadata": {}})
        if found is None and (request.method == "GET" or sub):
            return web.json_response({"message": f"{at[2]} not found"}, status=404)
        if request.method == "GET":
            return web.json_response(found)
        return web.json_response(self._patch(at, sub, body, request.query["fieldManager"]))

    def _create(self, body: dict[str, Any]) -> web.Response:
        if (body["kind"], body["metadata"]["namespace"], body["metadata"]["name"]) in self.objects:
            return web.json_response({"message": "already exists"}, status=409)
        return web.json_response(self.put(body), status=201)

    def _patch(self, at: tuple[str, str, str], sub: str, body: dict[str, Any], manager: str) -> dict[str, Any]:
        if not sub:
            return self._apply(at, body, manager)
        part, found = ("spec" if sub == "scale" else "status"), self.objects[at]
        merged = {**found["spec"], **body["spec"]} if sub == "scale" else body["status"]
        return self._replace(at, {**found, part: merged})

    def _apply(self, at: tuple[str, str, str], body: dict[str, Any], manager: str) -> dict[str, Any]:
        found = self.objects.get(at)
        entry = {"manager": manager, "operation": "Apply", "fieldsV1": fields_v1(body)}
        metadata = {**body["metadata"], "managedFields": [entry]}
        if found is None:
            spec = {"replicas": 1, **body.get("spec", {})} if body["kind"] == "Deployment" else body.get("spec", {})
            return self.put({**body, "metadata": metadata, "spec": spec})
        kept = {key: found["metadata"][key] for key in ("uid", "resourceVersion")}
        spec = {**found.get("spec", {}), **body.get("spec", {})}
        return self._replace(at, {**found, **body, "metadata": {**metadata, **kept}, "spec": spec})

    def _replace(self, at: tuple[str, str, str], body: dict[str, Any]) -> dict[str, Any]:
        """Store it; an unchanged object keeps its version, as with the real one."""
        if body != self.objects[at]:
            self.version += 1
            body = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.version)}}
            self.objects[at] = body
        return body


@pytest.fixture
def api() -> FakeApi:
    return FakeApi()


@pytest.fixture
async def kube(api: FakeApi) -> AsyncIterator[Kube]:
    """A client of the API server in memory, over HTTP on loopback."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", api.handle)
    server = TestServer(app)
    await server.start_server()
    client = Kube.connect(Configuration(host=str(server.make_url("/")).rstrip("/")), timeout_seconds=5)
    yield client
    await client.close()
    await server.close()
