"""The operator's edges: the API server, Prometheus, the forecaster, the health endpoint; each over its real transport."""

import asyncio
import json
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from kubernetes.aio.client import Configuration

from warmfront_api import names
from warmfront_api.status import InferenceServiceStatus
from warmfront_forecaster.adapters.prometheus_client import PrometheusError, Sample
from warmfront_forecaster.contract import CapacityQuery, ServiceQuery
from warmfront_operator import health, metrics
from warmfront_operator.__main__ import main
from warmfront_operator.domain import manifests, resources
from warmfront_operator.domain.events import Event
from warmfront_operator.domain.manifests import Inputs
from warmfront_operator.domain.resources import ChildKind, Deployment, ServiceKey
from warmfront_operator.domain.template import GatewayImage
from warmfront_operator.errors import ConfigurationError, KubeError, NameTakenError, PredecessorError
from warmfront_operator.kube import access, forecasts
from warmfront_operator.kube import status as status_writer
from warmfront_operator.kube.apply import apply_child
from warmfront_operator.kube.client import Kube
from warmfront_operator.kube.events import Recorder
from warmfront_operator.kube.forecasts import ForecastSource
from warmfront_operator.kube.prometheus import DemandSource, queries
from warmfront_operator.kube.scale import scale
from warmfront_operator.settings import Settings

Make = Callable[..., Any]
KEY = ServiceKey("ml", "chat")
KINDS = [pytest.param(kind, id=str(kind)) for kind in ChildKind]


def rendered(service: Any) -> dict[ChildKind, dict[str, Any]]:
    return manifests.children(service, Inputs(gateway=GatewayImage(image="gw:1", pull_policy="IfNotPresent")))


# the API server


@pytest.mark.parametrize("kind", KINDS)
async def test_a_child_that_was_applied_needs_no_second_look(kube: Kube, api: Any, make_service: Make, kind: ChildKind) -> None:
    manifest = rendered(make_service())[kind]
    child = await apply_child(kube, kind, manifest, None)
    assert child.applied_hash == manifests.applied_hash(manifest)
    assert child.owned_fields == child.applied_fields
    assert [write[:2] for write in api.writes] == [("PATCH", str(kind))] * 2
    assert all(
        query == {"fieldManager": names.FIELD_MANAGER, "force": "true", "fieldValidation": "Strict"} for query in api.queries
    )


async def test_a_changed_value_takes_one_write(kube: Kube, api: Any, make_service: Make) -> None:
    child = await apply_child(kube, ChildKind.CONFIG_MAP, rendered(make_service())[ChildKind.CONFIG_MAP], None)
    api.writes.clear()
    changed = rendered(make_service(drain__timeoutSeconds=9))[ChildKind.CONFIG_MAP]
    await apply_child(kube, ChildKind.CONFIG_MAP, changed, child)
    assert len(api.writes) == 1
    assert '"timeoutSeconds": 9' in api.get("ConfigMap")["data"]["gateway.json"]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_foreign_object_of_that_name_is_never_written(kube: Kube, api: Any, make_service: Make, kind: ChildKind) -> None:
    api.put({"kind": str(kind), "metadata": {"name": "chat", "namespace": "ml"}, "spec": {"theirs": True}})
    with pytest.raises(NameTakenError, match=f"the {kind} chat exists and belongs to nobody"):
        await apply_child(kube, kind, rendered(make_service())[kind], None)
    assert api.writes == []


async def test_a_child_of_a_deleted_namesake_is_waited_for(kube: Kube, api: Any, make_service: Make) -> None:
    old = rendered(make_service(uid="the-former"))[ChildKind.SERVICE]
    api.put(old)
    with pytest.raises(PredecessorError, match="still being removed"):
        await apply_child(kube, ChildKind.SERVICE, rendered(make_service())[ChildKind.SERVICE], None)
    assert api.writes == []


async def test_replicas_are_written_through_scale_alone(kube: Kube, api: Any, make_service: Make) -> None:
    applied = await apply_child(kube, ChildKind.DEPLOYMENT, rendered(make_service())[ChildKind.DEPLOYMENT], None)
    assert isinstance(applied, Deployment)
    assert applied.replicas == 1
    api.writes.clear()
    scaled = await scale(kube, applied, 4)
    assert api.writes == [("PATCH", "Deployment/scale", "chat")]
    assert api.queries[-1]["fieldManager"] == names.FIELD_MANAGER_SCALE
    assert (scaled.replicas, scaled.version) == (4, resources.version(api.get("Deployment")["metadata"]))
    assert scaled.template == applied.template


async def test_status_goes_to_its_subresource_under_its_own_manager(kube: Kube, api: Any, raw_service: Make) -> None:
    api.put(raw_service())
    body = await status_writer.write(kube, KEY, InferenceServiceStatus(observed_generation=3))
    assert api.writes == [("PATCH", "InferenceService/status", "chat")]
    assert api.queries[-1]["fieldManager"] == names.FIELD_MANAGER_STATUS
    assert body["status"]["observedGeneration"] == 3


@pytest.mark.parametrize(
    ("answer", "refused"), [(400, True), (403, True), (422, True), (409, False), (429, False), (500, False), (503, False)]
)
async def test_errors_carry_the_api_servers_words_and_whether_asking_again_helps(
    kube: Kube, api: Any, make_service: Make, answer: int, refused: bool
) -> None:
    api.refuse["PATCH", "Service"] = answer
    with pytest.raises(KubeError, match="Service is refused") as caught:
        await apply_child(kube, ChildKind.SERVICE, rendered(make_service())[ChildKind.SERVICE], None)
    assert (caught.value.status, caught.value.refused) == (answer, refused)


async def test_an_api_server_that_is_away_is_an_error_of_ours() -> None:
    kube = Kube.connect(Configuration(host="http://127.0.0.1:9"), timeout_seconds=1)
    with pytest.raises(KubeError, match="no answer") as caught:
        await kube.get("Service", KEY)
    assert caught.value.status is None
    assert not caught.value.refused
    await kube.close()


async def test_the_way_to_the_api_server_goes_through_no_proxy_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kube: Kube, api: Any, raw_service: Make
) -> None:
    api.put(raw_service())
    kubeconfig = tmp_path / "kubeconfig"
    cluster = {"name": "c", "cluster": {"server": kube.client.client.configuration.host}}
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    user = {"name": "u", "user": {"token": "t0ken"}}
    kubeconfig.write_text(json.dumps({"clusters": [cluster], "contexts": [context], "users": [user], "current-context": "c"}))
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    ours = Kube.connect(await access.configuration(), timeout_seconds=5)
    assert await ours.get(names.KIND, KEY) is not None
    await ours.close()
    found = await access.credentials()
    assert (found.scheme, found.token) == ("Bearer", "t0ken")


async def test_no_way_to_an_api_server_is_said_in_words(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "absent"))
    with pytest.raises(ConfigurationError, match="set KUBECONFIG"):
        await access.configuration()


async def test_each_event_is_written_once_and_by_a_successor_not_at_all(
    kube: Kube, api: Any, raw_service: Make, now: datetime
) -> None:
    event = Event(type="Normal", reason="ScaledUp", action="Scale", note="1 -> 2", once="scale/1")
    recorder = Recorder(kube)
    await recorder.record(raw_service(), [event, event], now)
    await recorder.record(raw_service(), [event], now + timedelta(minutes=1))
    await Recorder(kube).record(raw_service(), [event], now + timedelta(minutes=2))
    found = [body for (kind, *_), body in api.objects.items() if kind == "Event"]
    assert [(body["reason"], body["regarding"]["uid"], body["eventTime"]) for body in found] == [
        ("ScaledUp", raw_service()["metadata"]["uid"], "2026-03-02T09:00:00.000000Z")
    ]


async def test_an_event_that_cannot_be_written_stops_nothing(kube: Kube, api: Any, raw_service: Make, now: datetime) -> None:
    api.refuse["POST", "Event"] = 403
    event = Event(type="Normal", reason="ScaledUp", action="Scale", note="1 -> 2", once="scale/1")
    await Recorder(kube).record(raw_service(), [event], now)
    assert api.events() == []


async def test_objects_that_vanished_unseen_are_dropped(
    kube: Kube, api: Any, raw_service: Make, make_service: Make, now: datetime
) -> None:
    """Kopf lists again after an expired watch, and says nothing of what is gone."""
    api.put(raw_service())
    await apply_child(kube, ChildKind.SERVICE, rendered(make_service())[ChildKind.SERVICE], None)
    observed = api.observed()
    assert observed.keys() == [KEY]
    del api.objects["Service", "ml", "chat"]
    assert await observed.verify(kube, ()) == 1
    assert observed.child(ChildKind.SERVICE, KEY, now) is None
    assert observed.keys() == [KEY]
    del api.objects[names.KIND, "ml", "chat"]
    assert await observed.verify(kube, ()) == 2
    assert observed.keys() == []


async def test_an_own_write_counts_until_the_watch_has_it(api: Any, make_deployment: Make, now: datetime) -> None:
    observed = api.observed()
    written = make_deployment(version=50, replicas=4)
    observed.wrote_child(written, now)
    assert observed.child(ChildKind.DEPLOYMENT, KEY, now) == written
    index = observed.indices.children[ChildKind.DEPLOYMENT]
    index[KEY] = [make_deployment(version=49, replicas=1)]
    assert observed.child(ChildKind.DEPLOYMENT, KEY, now) == written
    index[KEY] = [make_deployment(version=51, replicas=7)]
    assert observed.child(ChildKind.DEPLOYMENT, KEY, now).replicas == 7


def test_an_own_write_is_not_believed_for_ever(api: Any, make_deployment: Make, now: datetime) -> None:
    """Somebody deletes what was just written, and the watch brings the deletion first."""
    observed = api.observed()
    observed.wrote_child(make_deployment(version=50), now)
    assert observed.child(ChildKind.DEPLOYMENT, KEY, now + timedelta(seconds=30)) is None


# Prometheus


class FakePrometheus:
    """Answers by the figure that a query asks for."""

    def __init__(self, figures: dict[str, dict[tuple[str, str], float]], error: Exception | None = None) -> None:
        self.figures, self.error = figures, error
        self.known = {promql: name for name, promql in queries(60).items()}

    def query(self, promql: str, at: float | None = None) -> list[Sample]:
        assert at is None
        if self.error:
            raise self.error
        values = self.figures.get(self.known[promql], {})
        labels = [({"inferenceservice_namespace": ns, "inferenceservice": name}, value) for (ns, name), value in values.items()]
        return [Sample(labels=found, time=0.0, value=value) for found, value in [*labels, ({"job": "other"}, 99.0)]]


def source(client: Any) -> DemandSource:
    return DemandSource(client=client, window_seconds=60, timeout_seconds=1)


async def test_demand_of_all_services_comes_from_four_queries() -> None:
    figures = {
        "arrivals": {("ml", "chat"): 2.5, ("ml", "idle"): 0.0},
        "prompt": {("ml", "chat"): 700.0},
        "output": {("ml", "chat"): 120.0},
        "backlog": {("ml", "chat"): 6.0},
    }
    found = await source(FakePrometheus(figures)).read()
    chat, idle = found.view(KEY).reading, found.view(ServiceKey("ml", "idle")).reading
    assert chat is not None
    assert (chat.arrivals_per_second, chat.prompt_tokens, chat.output_tokens, chat.backlog_requests) == (2.5, 700.0, 120.0, 6.0)
    assert idle is not None
    assert (idle.arrivals_per_second, idle.prompt_tokens, idle.backlog_requests) == (0.0, None, 0.0)


async def test_a_service_that_nobody_counts_is_unknown_not_zero() -> None:
    found = await source(FakePrometheus({"backlog": {("ml", "chat"): 3.0}})).read()
    view = found.view(KEY)
    assert (view.reading, view.error, view.configured) == (None, "", True)


async def test_a_failing_prometheus_is_told() -> None:
    error = PrometheusError("Prometheus is busy", retryable=True)
    view = (await source(FakePrometheus({}, error)).read()).view(KEY)
    assert view.reading is None
    assert "busy" in view.error


async def test_no_prometheus_is_told_apart_from_a_failing_one() -> None:
    assert (await source(None).read()).view(KEY).configured is False


def test_queries_sum_over_the_pods_by_the_two_labels_of_the_gateway() -> None:
    asked = queries(75)
    assert "rate(warmfront_gateway_arrivals_total[75s])" in asked["arrivals"]
    assert 'warmfront_gateway_requests_total{outcome="served"}[10m]' in asked["prompt"]
    assert all(promql.startswith("sum by (inferenceservice_namespace, inferenceservice) (") for promql in asked.values())


# the forecaster

QUERY = ServiceQuery(
    namespace="ml",
    name="chat",
    capacity=CapacityQuery(prefill_tokens_per_second=1, decode_tokens_per_second=1, target_utilization=0.5),
    lead_time_seconds=100,
)


async def ask(handler: Callable[[httpx.Request], httpx.Response], now: datetime) -> Any:
    async with httpx.AsyncClient(base_url="http://forecaster", transport=httpx.MockTransport(handler)) as client:
        return (await ForecastSource(client=client).ask([QUERY], now)).view(KEY)


async def test_one_request_asks_for_all_services(now: datetime) -> None:
    seen: list[Any] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append((request.method, request.url.path, json.loads(request.content)))
        answer = {"namespace": "ml", "name": "chat", "state": "Trusted", "reason": "R", "message": "m", "upper": 2.5}
        return httpx.Response(200, json={"services": [answer]})

    view = await ask(handler, now)
    ((method, path, body),) = seen
    assert (method, path) == ("POST", "/v1/forecasts")
    assert body["services"][0]["leadTimeSeconds"] == 100
    assert view.answer.upper == 2.5


@pytest.mark.parametrize(
    ("handler", "words"),
    [
        pytest.param(lambda _: httpx.Response(500), "HTTP 500", id="an error"),
        pytest.param(lambda _: httpx.Response(200, text="<html>"), "differ in version", id="an answer of another kind"),
        pytest.param(lambda _: httpx.Response(200, json={"services": [{"name": 1}]}), "differ in version", id="another version"),
    ],
)
async def test_a_forecaster_that_fails_leaves_a_reason(handler: Any, words: str, now: datetime) -> None:
    view = await ask(handler, now)
    assert view.answer is None
    assert view.reason == "ForecasterUnavailable"
    assert words in view.message


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (httpx.ConnectError("refused"), "cannot be reached (refused)"),
        (httpx.ReadError(""), "cannot be reached (ReadError)"),
        (httpx.ReadTimeout("slow"), "did not answer in time"),
    ],
    ids=["away", "gone without a word", "slow"],
)
async def test_a_forecaster_that_does_not_answer_leaves_a_reason(error: Exception, words: str, now: datetime) -> None:
    def handler(_: httpx.Request) -> httpx.Response:
        raise error

    assert words in (await ask(handler, now)).message


async def test_a_forecaster_that_closes_idle_connections_is_asked_all_the_same(now: datetime) -> None:
    """As uvicorn does after five seconds; whoever keeps the connection meets the end of it every few ticks."""
    connections: list[asyncio.Task[None] | None] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(asyncio.current_task())
        await reader.readuntil(b"\r\n\r\n")
        body = b'{"services": []}'
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        writer.write(head % len(body) + body)
        await writer.drain()
        await asyncio.sleep(0.02)
        writer.close()  # without having announced it
        await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, forecasts.connect(f"http://127.0.0.1:{port}", 5.0) as client:
        for _ in range(5):
            assert (await ForecastSource(client=client).ask([QUERY], now)).reason == "NoAnswer"
        await asyncio.gather(*filter(None, connections))
    assert len(connections) == 5


async def test_without_a_forecaster_the_reason_is_the_setting(now: datetime) -> None:
    view = (await ForecastSource(client=None).ask([QUERY], now)).view(KEY)
    assert (view.answer, view.reason) == (None, "ForecasterNotConfigured")


# health, settings, metrics


async def test_health_tells_a_loop_that_hangs() -> None:
    time = 0.0
    heartbeat = health.Heartbeat(60.0, monotonic=lambda: time)
    server = health.serve(heartbeat, "127.0.0.1", 0)
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{server.server_port}", trust_env=False) as client:
        assert (await client.get("/healthz")).status_code == 200
        time = 61.0
        silent = await client.get("/healthz")
        assert (silent.status_code, "silent for 61 s" in silent.text) == (503, True)
        heartbeat.beat()
        assert (await client.get("/healthz")).status_code == 200
        assert "warmfront_tick_seconds" in (await client.get("/metrics")).text
        assert (await client.get("/secret")).status_code == 404
    await asyncio.to_thread(server.shutdown)
    server.server_close()


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARMFRONT_OPERATOR_GATEWAY_IMAGE", "gw:1")
    monkeypatch.setenv("WARMFRONT_OPERATOR_NAMESPACES", "ml, chat")
    found = Settings()
    assert (found.gateway_image, found.namespaces, found.tick_seconds) == ("gw:1", ("ml", "chat"), 15.0)


def test_a_wrong_setting_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("WARMFRONT_OPERATOR_TICK_SECONDS", "soon")
    monkeypatch.delenv("WARMFRONT_OPERATOR_GATEWAY_IMAGE", raising=False)
    assert main([]) == 2
    shown = capsys.readouterr().err
    assert "WARMFRONT_OPERATOR_TICK_SECONDS" in shown
    assert "WARMFRONT_OPERATOR_GATEWAY_IMAGE: Field required" in shown


def test_every_metric_is_documented_and_begins_with_our_prefix() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/metrics-operator.md").read_text()
    documented = set(re.findall(r"^\| `(\w+)`", page, re.MULTILINE))
    families = {family.name + ("_total" if family.type == "counter" else "") for family in metrics.REGISTRY.collect()}
    assert families == documented
    assert all(name.startswith("warmfront_") for name in families)
