"""The children as they are applied."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from warmfront_api import names
from warmfront_api.gateway_config import GatewayConfig
from warmfront_operator.domain import manifests, template
from warmfront_operator.domain.manifests import Inputs
from warmfront_operator.domain.resources import ChildKind, Deployment, Template, digest
from warmfront_operator.domain.template import GatewayImage

IMAGE = GatewayImage(image="warmfront/gateway:1", pull_policy="IfNotPresent")
INPUTS = Inputs(gateway=IMAGE)


def deployment_of(service: Any, inputs: Inputs = INPUTS) -> dict[str, Any]:
    return manifests.children(service, inputs)[ChildKind.DEPLOYMENT]


def containers(service: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    spec = deployment_of(service)["spec"]["template"]["spec"]
    return spec["initContainers"][0], spec["containers"][0]


def keys_in(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set(value) | {key for item in value.values() for key in keys_in(item)}
    return {key for item in value for key in keys_in(item)} if isinstance(value, list) else set()


def test_one_of_each_kind_is_rendered_under_the_name_of_the_service(make_service: Callable[..., Any]) -> None:
    rendered = manifests.children(make_service(), INPUTS)
    assert list(rendered) == list(ChildKind)
    assert {(body["metadata"]["name"], body["metadata"]["namespace"]) for body in rendered.values()} == {("chat", "ml")}
    assert {kind: body["kind"] for kind, body in rendered.items()} == {kind: str(kind) for kind in ChildKind}


def test_every_child_is_controlled_by_the_service_without_blocking_its_deletion(make_service: Callable[..., Any]) -> None:
    service = make_service()
    for body in manifests.children(service, INPUTS).values():
        (owner,) = body["metadata"]["ownerReferences"]
        assert (owner["uid"], owner["controller"], owner["blockOwnerDeletion"]) == (service.uid, True, False)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    minimum=st.integers(1, 1000),
    more=st.integers(0, 500),
    asked=st.none() | st.integers(0, 1000),
    mode=st.sampled_from(["Active", "Advisory", "Paused"]),
    ready=st.integers(0, 1000),
)
def test_no_manifest_ever_carries_replicas(
    make_service: Callable[..., Any], minimum: int, more: int, asked: int | None, mode: str, ready: int
) -> None:
    service = make_service(
        replicas=asked, scaling__minReplicas=minimum, scaling__maxReplicas=min(1000, minimum + more), scaling__mode=mode
    )
    rendered = manifests.children(service, Inputs(gateway=IMAGE, ready_pods=ready))
    assert "replicas" not in keys_in(list(rendered.values()))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(maximum=st.integers(1, 1000), mode=st.sampled_from(["Off", "Shadow", "Active"]), asked=st.none() | st.integers(0, 9))
def test_nothing_of_the_scaling_block_changes_the_deployment(
    make_service: Callable[..., Any], maximum: int, mode: str, asked: int | None
) -> None:
    changed = make_service(replicas=asked, scaling__maxReplicas=maximum, scaling__predictive={"mode": mode})
    assert deployment_of(changed) == deployment_of(make_service())


def test_only_the_disruption_budget_follows_the_warm_pods(make_service: Callable[..., Any]) -> None:
    service = make_service()
    one, two = (manifests.children(service, Inputs(gateway=IMAGE, ready_pods=count)) for count in (3, 5))
    assert {kind for kind in ChildKind if one[kind] != two[kind]} == {ChildKind.POD_DISRUPTION_BUDGET}


@pytest.mark.parametrize(("ready", "minimum"), [(0, 0), (1, 0), (2, 1), (9, 8)])
def test_the_disruption_budget_lets_one_warm_pod_go(make_service: Callable[..., Any], ready: int, minimum: int) -> None:
    budget = manifests.children(make_service(), Inputs(gateway=IMAGE, ready_pods=ready))[ChildKind.POD_DISRUPTION_BUDGET]
    assert budget["spec"]["minAvailable"] == minimum
    assert budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    args=st.lists(st.text(max_size=20).map(lambda text: f"--x={text}"), max_size=4),
    env=st.dictionaries(st.from_regex(r"[A-Z]{1,8}", fullmatch=True), st.text(max_size=20), max_size=3),
)
def test_hashes_survive_a_round_trip_through_json(make_service: Callable[..., Any], args: list[str], env: dict[str, str]) -> None:
    service = make_service(engine__args=args, engine__env=[{"name": key, "value": value} for key, value in env.items()])
    for body in manifests.children(service, INPUTS).values():
        again = json.loads(json.dumps(body))
        assert again == body
        stripped = dict(again["metadata"]["annotations"])
        stated = stripped.pop(names.ANNOTATION_APPLIED_HASH)
        metadata = {key: value for key, value in again["metadata"].items() if key != "annotations"}
        assert digest({**again, "metadata": metadata, "annotations": stripped}) == stated


@pytest.mark.parametrize(
    ("changes", "kinds"),
    [
        pytest.param({"engine__image": "vllm/vllm-openai:v0.34.0"}, {"Deployment"}, id="a new engine changes the pods"),
        pytest.param(
            {"drain__timeoutSeconds": 60}, {"Deployment", "ConfigMap"}, id="the drain time is the gateway's and the pod's"
        ),
        pytest.param({"gateway__limits__maxConcurrentRequests": 9}, {"Deployment", "ConfigMap"}, id="limits roll the pods"),
        pytest.param({"scaling__maxReplicas": 3}, set(), id="bounds change no child"),
    ],
)
def test_a_change_of_the_spec_changes_the_hash_of_what_it_concerns(
    make_service: Callable[..., Any], changes: dict[str, Any], kinds: set[str]
) -> None:
    before, after = manifests.children(make_service(), INPUTS), manifests.children(make_service(**changes), INPUTS)
    assert {
        str(kind) for kind in ChildKind if manifests.applied_hash(before[kind]) != manifests.applied_hash(after[kind])
    } == kinds


@pytest.mark.parametrize(
    ("changes", "flags"),
    [
        pytest.param(
            {},
            [
                "--host=127.0.0.1",
                "--port=8000",
                "--model=meta-llama/Llama-3.1-8B-Instruct",
                "--served-model-name=llama",
                "--max-num-seqs=256",
            ],
            id="a hub model with the defaults",
        ),
        pytest.param(
            {"model__source": "path:///models/sim", "engine__maxModelLen": 4096, "engine__args": ["--dtype=bfloat16"]},
            [
                "--host=127.0.0.1",
                "--port=8000",
                "--model=/models/sim",
                "--served-model-name=llama",
                "--max-model-len=4096",
                "--max-num-seqs=256",
                "--dtype=bfloat16",
            ],
            id="a folder, a length and the user's own flag last",
        ),
        pytest.param(
            {"model__revision": "v2"},
            [
                "--host=127.0.0.1",
                "--port=8000",
                "--model=meta-llama/Llama-3.1-8B-Instruct",
                "--served-model-name=llama",
                "--revision=v2",
                "--max-num-seqs=256",
            ],
            id="a revision",
        ),
    ],
)
def test_the_engine_gets_our_flags_and_then_the_users(
    make_service: Callable[..., Any], changes: dict[str, Any], flags: list[str]
) -> None:
    engine, _ = containers(make_service(**changes))
    assert engine["args"] == flags
    assert engine["restartPolicy"] == "Always"
    assert "command" not in engine


def test_the_users_command_replaces_the_images_entry_point(make_service: Callable[..., Any]) -> None:
    engine, _ = containers(make_service(engine__command=["python3", "-m", "vllm.entrypoints.openai.api_server"]))
    assert engine["command"][0] == "python3"


def test_the_gateway_container_meets_the_restricted_pod_security_standard(make_service: Callable[..., Any]) -> None:
    _, gateway = containers(make_service())
    context = gateway["securityContext"]
    assert context["runAsNonRoot"] is True
    assert context["runAsUser"] == 65532
    assert context["readOnlyRootFilesystem"] is True
    assert context["allowPrivilegeEscalation"] is False
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    assert (gateway["readinessProbe"]["periodSeconds"], gateway["readinessProbe"]["failureThreshold"]) == (2, 2)


def test_a_pod_has_time_to_leave_the_endpoints_drain_and_close(make_service: Callable[..., Any]) -> None:
    pod = deployment_of(make_service(drain__timeoutSeconds=77))["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] == 5 + 77 + 10
    assert pod["automountServiceAccountToken"] is False
    assert pod["enableServiceLinks"] is False


def test_a_rollout_may_wait_for_the_warm_up_and_for_a_node(make_service: Callable[..., Any]) -> None:
    assert deployment_of(make_service(warmup__timeoutSeconds=1000))["spec"]["progressDeadlineSeconds"] > 1000


def test_the_users_pod_template_is_merged_and_ours_wins(make_service: Callable[..., Any]) -> None:
    service = make_service(
        podTemplate={
            "metadata": {"labels": {"team": "ml"}, "annotations": {"prometheus.io/port": "1", "note": "x"}},
            "spec": {"nodeSelector": {"gpu": "h100"}, "volumes": [{"name": "cache", "emptyDir": {}}]},
        },
        engine__volumeMounts=[{"name": "cache", "mountPath": "/root/.cache"}],
    )
    pod = deployment_of(service)["spec"]["template"]
    assert pod["metadata"]["labels"]["team"] == "ml"
    assert pod["metadata"]["labels"][names.LABEL_SERVICE] == "chat"
    assert pod["metadata"]["annotations"]["prometheus.io/port"] == "9090"
    assert pod["metadata"]["annotations"]["note"] == "x"
    assert pod["spec"]["nodeSelector"] == {"gpu": "h100"}
    assert [volume["name"] for volume in pod["spec"]["volumes"]] == ["cache", "warmfront-gateway"]


def test_the_gateway_can_read_what_it_is_given(make_service: Callable[..., Any]) -> None:
    service = make_service(drain__timeoutSeconds=33, gateway__limits__requestTimeoutSeconds=44)
    content = manifests.children(service, INPUTS)[ChildKind.CONFIG_MAP]["data"]["gateway.json"]
    config = GatewayConfig.model_validate_json(content)
    assert (config.service, config.namespace, config.model_name) == ("chat", "ml", "llama")
    assert (config.drain.timeout_seconds, config.limits.request_timeout_seconds) == (33, 44)


def running(body: dict[str, Any], make_deployment: Callable[..., Deployment]) -> Deployment:
    annotations = body["metadata"]["annotations"]
    return make_deployment(
        template=Template(
            hash="t",
            spec_hash=annotations["warmfront.dev/spec-hash"],
            revision=annotations[names.ANNOTATION_TEMPLATE_REVISION],
            gateway_image=body["spec"]["template"]["spec"]["containers"][0]["image"],
            gateway_pull_policy="IfNotPresent",
        )
    )


def test_an_operator_upgrade_rolls_no_pod_until_the_user_changes_the_template(
    make_service: Callable[..., Any], make_deployment: Callable[..., Deployment]
) -> None:
    service = make_service()
    before = deployment_of(service)
    upgraded = Inputs(gateway=GatewayImage(image="warmfront/gateway:2", pull_policy="Always"))
    current = running(before, make_deployment)
    assert deployment_of(service, manifests.pinned(upgraded, service, current)) == before

    changed = make_service(engine__maxNumSeqs=64)
    after = deployment_of(changed, manifests.pinned(upgraded, changed, current))
    assert after["spec"]["template"]["spec"]["containers"][0]["image"] == "warmfront/gateway:2"


def test_a_scaling_change_after_an_upgrade_rolls_no_pod_either(
    make_service: Callable[..., Any], make_deployment: Callable[..., Deployment]
) -> None:
    current = running(deployment_of(make_service()), make_deployment)
    changed = make_service(scaling__maxReplicas=2)
    upgraded = Inputs(gateway=GatewayImage(image="warmfront/gateway:2", pull_policy="Always"))
    rendered = deployment_of(changed, manifests.pinned(upgraded, changed, current))
    assert rendered["spec"]["template"] == deployment_of(make_service())["spec"]["template"]


@pytest.mark.parametrize(
    ("answer", "passes"),
    [
        pytest.param(200, True, id="an engine that answers passes"),
        pytest.param(503, False, id="a gateway that says the engine has hung fails"),
        pytest.param(500, True, id="a broken gateway passes"),
        pytest.param(404, True, id="a gateway of another release passes"),
        pytest.param(None, True, id="a gateway that is being restarted passes"),
    ],
)
def test_the_engines_liveness_fails_only_when_the_gateway_answers_503(answer: int | None, passes: bool) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            assert self.path == "/engine/livez"
            self.send_response(answer or 200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    if answer is None:
        server.server_close()
    else:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    script = template.ENGINE_LIVENESS.replace(str(names.PORT_METRICS), str(server.server_port))
    done = subprocess.run([sys.executable, "-c", script], check=False, timeout=30)
    if answer is not None:
        server.shutdown()
        server.server_close()
    assert (done.returncode == 0) is passes
