"""The operator as a process, against a real API server, with no more rights than the chart gives it.

Its pods find no node here on purpose: what pods do is told in `test_main_job`; here it is what the operator writes.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from e2e.localcluster.inside import existing_kubeconfig
from e2e.localcluster.layout import cache, cluster_paths
from e2e.support import kube
from e2e.support.audit import writes
from e2e.support.errors import CommandError
from e2e.support.install import CHARTS
from e2e.support.install import NAMESPACE as INSTALLED
from e2e.support.programs import run
from warmfront_api.names import FIELD_MANAGER, FIELD_MANAGER_SCALE

NAMESPACE: Final = "operator-api"
DEFINITION: Final = Path(__file__).parents[1] / "crds" / "inferenceservices.warmfront.dev.yaml"
RESOURCE: Final = "inferenceservices.warmfront.dev"
ACCOUNT: Final = "warmfront-operator"
CHILDREN: Final = ("serviceaccount", "configmap", "service", "poddisruptionbudget", "deployment")
TICK_SECONDS: Final = 1
SETTLE_SECONDS: Final = 20.0


@pytest.fixture(scope="module", autouse=True)
def _alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """This operator and no other; the definition, and the rights that the chart gives in one namespace."""
    others = _scale_installed(0)
    absent = not _exists(f"customresourcedefinition/{RESOURCE}")
    if absent:
        kube.kubectl("apply", "--server-side", f"--filename={DEFINITION}")
    kube.kubectl("wait", "--for=condition=Established", f"customresourcedefinition/{RESOURCE}", "--timeout=30s")
    kube.apply_objects({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}, *_rights())
    process = _start(tmp_path_factory.mktemp("operator"))
    try:
        yield
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0
    finally:
        process.kill()
        process.wait()
        kube.kubectl("delete", "namespace", NAMESPACE, "--wait=false", "--ignore-not-found")
        if absent:
            kube.kubectl("delete", f"customresourcedefinition/{RESOURCE}")
        if others:
            _scale_installed(1)


def _exists(what: str, *arguments: str) -> bool:
    return bool(kube.kubectl("get", what, *arguments, "--ignore-not-found", "--output=name").strip())


def _scale_installed(replicas: int) -> bool:
    """Whether an operator is installed, which now has so many pods."""
    if not _exists(f"deployment/{ACCOUNT}", f"--namespace={INSTALLED}"):
        return False
    kube.kubectl("scale", f"deployment/{ACCOUNT}", f"--namespace={INSTALLED}", f"--replicas={replicas}")
    kube.kubectl("rollout", "status", f"deployment/{ACCOUNT}", f"--namespace={INSTALLED}", "--timeout=120s")
    return True


def _rights() -> list[dict[str, Any]]:
    """The chart's own Role, bound to the chart's own account."""
    chosen = [f"--show-only=templates/{name}.yaml" for name in ("rbac/operator", "operator/serviceaccount")]
    values = f"--set=operator.watchNamespaces={{{NAMESPACE}}},prometheus.url=http://unused"
    rendered = run("helm", "template", "warmfront", str(CHARTS / "warmfront"), f"--namespace={NAMESPACE}", values, *chosen)
    return [document for document in yaml.safe_load_all(rendered) if document]


def _start(folder: Path) -> "subprocess.Popen[bytes]":
    kubeconfig = folder / "kubeconfig.json"
    kubeconfig.write_text(json.dumps(_kubeconfig()))
    ours = {
        "KUBECONFIG": str(kubeconfig),
        "WARMFRONT_OPERATOR_GATEWAY_IMAGE": "localhost/warmfront/gateway:dev",
        "WARMFRONT_OPERATOR_NAMESPACES": NAMESPACE,
        "WARMFRONT_OPERATOR_TICK_SECONDS": str(TICK_SECONDS),
        "WARMFRONT_OPERATOR_METRICS_HOST": "127.0.0.1",
        "WARMFRONT_OPERATOR_METRICS_PORT": "0",
        "WARMFRONT_OPERATOR_LOG_FORMAT": "text",
    }
    return subprocess.Popen([sys.executable, "-m", "warmfront_operator"], env={**os.environ, **ours})


def _kubeconfig() -> dict[str, Any]:
    """The way to the same API server, as the account."""
    found: dict[str, Any] = json.loads(kube.kubectl("config", "view", "--raw", "--minify", "--output=json"))
    token = kube.kubectl("create", "token", ACCOUNT, f"--namespace={NAMESPACE}").strip()
    return {**found, "users": [{"name": user["name"], "user": {"token": token}} for user in found["users"]]}


def manifest(name: str, **scaling: Any) -> dict[str, Any]:
    capacity = {"prefillTokensPerSecond": 1000, "decodeTokensPerSecond": 100}
    return {
        "apiVersion": "warmfront.dev/v1alpha1",
        "kind": "InferenceService",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "model": {"name": "m", "source": "path:///m"},
            "engine": {"image": "localhost/warmfront/enginesim:dev", "resources": {"limits": {"cpu": "1000m"}}},
            "scaling": {"minReplicas": 3, "maxReplicas": 5, "capacity": capacity, "predictive": {"mode": "Off"}, **scaling},
            "podTemplate": {"spec": {"nodeSelector": {"warmfront.dev/nowhere": "true"}}},
        },
    }


def apply(document: dict[str, Any]) -> dict[str, Any]:
    return kube.apply_manifest(document)


def get(kind: str, name: str) -> dict[str, Any]:
    return kube.get(kind, name, f"--namespace={NAMESPACE}")


def status_of(name: str) -> dict[str, Any]:
    return dict(get(RESOURCE, name).get("status", {}))


def condition(name: str, kind: str) -> tuple[str, str]:
    found = {item["type"]: (item["status"], item["reason"]) for item in status_of(name).get("conditions", [])}
    return found.get(kind, ("", ""))


def wait(what: str, holds: Callable[[], bool], *, seconds: float = SETTLE_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not _true(holds):
        assert time.monotonic() < deadline, f"waited {seconds:.0f} s in vain for {what}"
        time.sleep(0.3)


def _true(holds: Callable[[], bool]) -> bool:
    """An object that is not there yet is no failure."""
    try:
        return holds()
    except CommandError:
        return False


def versions(name: str) -> dict[str, str]:
    kinds = (RESOURCE, *CHILDREN)
    return {kind: get(kind, name)["metadata"]["resourceVersion"] for kind in kinds}


def settled(name: str) -> dict[str, str]:
    """Versions after the cluster's own controllers, too, have come to rest."""
    before: dict[str, str] = {}
    deadline = time.monotonic() + 60.0
    while (now := versions(name)) != before:
        assert time.monotonic() < deadline, f"{name} does not come to rest"
        before = now
        time.sleep(3 * TICK_SECONDS)
    return now


def test_an_applied_service_gets_its_children_and_its_replicas() -> None:
    uid = apply(manifest("chat"))["metadata"]["uid"]
    wait("three replicas", lambda: get("deployment", "chat")["spec"]["replicas"] == 3, seconds=60)
    for kind in CHILDREN:
        (owner,) = get(kind, "chat")["metadata"]["ownerReferences"]
        assert (owner["uid"], owner["controller"], owner["blockOwnerDeletion"]) == (uid, True, False)
    wait("all conditions", lambda: len(status_of("chat").get("conditions", [])) == 9)
    assert condition("chat", "ScalingActive") == ("False", "PrometheusNotConfigured")
    assert condition("chat", "Ready") == ("False", "NoWarmPod")
    assert status_of("chat")["desiredReplicas"] == 3


def test_replicas_belong_to_the_scaler_and_the_shape_to_the_operator() -> None:
    deployment = kube.get("deployment", "chat", f"--namespace={NAMESPACE}", "--show-managed-fields")
    entries = deployment["metadata"]["managedFields"]
    owners = [entry["manager"] for entry in entries if "f:replicas" in entry["fieldsV1"].get("f:spec", {})]
    assert owners == [FIELD_MANAGER_SCALE]
    assert FIELD_MANAGER in {entry["manager"] for entry in entries}


def test_applying_the_same_again_changes_nothing() -> None:
    before = settled("chat")
    apply(manifest("chat"))
    time.sleep(3 * TICK_SECONDS)
    assert versions("chat") == before


@pytest.mark.skipif(existing_kubeconfig() is not None, reason="the audit log is the test cluster's own")
def test_ten_ticks_with_nothing_changed_write_nothing() -> None:
    settled("chat")
    start = time.time()
    time.sleep(10 * TICK_SECONDS + 2)
    user = f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}"
    assert writes(cluster_paths(cache()).audit_log, user_prefix=user, start=start, end=time.time()) == []


def test_what_somebody_changes_by_hand_goes_back() -> None:
    patch = json.dumps({"spec": {"minAvailable": 2}})
    kube.kubectl("patch", "poddisruptionbudget", "chat", f"--namespace={NAMESPACE}", "--type=merge", f"--patch={patch}")
    wait("the budget as before", lambda: get("poddisruptionbudget", "chat")["spec"]["minAvailable"] == 0)
    kube.kubectl("label", "service", "chat", f"--namespace={NAMESPACE}", "app.kubernetes.io/managed-by=me", "--overwrite")
    label = "app.kubernetes.io/managed-by"
    wait("the label as before", lambda: get("service", "chat")["metadata"]["labels"][label] == "warmfront")


def test_a_deployment_that_somebody_deletes_comes_back_with_its_replicas() -> None:
    apply(manifest("chat", minReplicas=4))
    wait("four replicas", lambda: status_of("chat")["desiredReplicas"] == 4 == get("deployment", "chat")["spec"]["replicas"])
    apply(manifest("chat", minReplicas=1))
    wait("the new spec", lambda: status_of("chat")["observedGeneration"] == get(RESOURCE, "chat")["metadata"]["generation"])
    before = get("deployment", "chat")["metadata"]["uid"]
    kube.kubectl("delete", "deployment", "chat", f"--namespace={NAMESPACE}")
    wait("another Deployment", lambda: get("deployment", "chat")["metadata"]["uid"] != before, seconds=40)
    wait("its four replicas", lambda: get("deployment", "chat")["spec"]["replicas"] == 4)


def test_a_bound_rolls_no_pod_and_a_new_engine_does() -> None:
    template = get("deployment", "chat")["spec"]["template"]
    apply(manifest("chat", minReplicas=1, maxReplicas=9))
    wait("the new bound", lambda: status_of("chat")["observedGeneration"] == get(RESOURCE, "chat")["metadata"]["generation"])
    assert get("deployment", "chat")["spec"]["template"] == template
    changed = manifest("chat", minReplicas=1, maxReplicas=9)
    changed["spec"]["engine"]["maxNumSeqs"] = 7
    apply(changed)
    wait("the new engine", lambda: get("deployment", "chat")["spec"]["template"] != template)
    assert get("deployment", "chat")["spec"]["replicas"] == 4


def test_a_name_that_is_taken_is_left_to_its_owner() -> None:
    theirs = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "taken", "namespace": NAMESPACE}}
    stored = kube.apply_manifest({**theirs, "spec": {"ports": [{"port": 4711}], "selector": {"app": "theirs"}}})
    apply(manifest("taken"))
    wait("Stalled", lambda: condition("taken", "Stalled") == ("True", "NameTaken"))
    assert condition("taken", "Ready") == ("False", "NameTaken")
    assert get("service", "taken") == {
        **stored,
        "metadata": {k: v for k, v in stored["metadata"].items() if k != "managedFields"},
    }
    assert not _exists("deployment/taken", f"--namespace={NAMESPACE}")
    kube.kubectl("delete", "service", "taken", f"--namespace={NAMESPACE}")
    wait("the Deployment", lambda: _exists("deployment/taken", f"--namespace={NAMESPACE}"))
    wait("no stall", lambda: condition("taken", "Stalled") == ("False", "UpToDate"))


def test_a_pod_template_that_the_api_server_refuses_is_told_in_its_words() -> None:
    wrong = manifest("wrong")
    wrong["spec"]["podTemplate"]["spec"]["volumes"] = [{"name": "data", "emptyDirr": {}}]
    apply(wrong)
    wait("Stalled", lambda: condition("wrong", "Stalled") == ("True", "ChildRefused"))
    told = next(item["message"] for item in status_of("wrong")["conditions"] if item["type"] == "Stalled")
    assert "emptyDirr" in told


def test_a_stored_spec_that_is_garbage_stalls_and_harms_nobody() -> None:
    with_schema: dict[str, Any] = kube.get("customresourcedefinition", RESOURCE)
    loose = json.loads(json.dumps(with_schema))
    for each in loose["spec"]["versions"]:
        each["schema"]["openAPIV3Schema"]["properties"]["spec"] = {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
        }
    loose["metadata"].pop("managedFields", None)
    garbage = manifest("garbage")
    garbage["spec"]["scaling"] = {"maxReplicas": "many"}
    try:
        kube.kubectl("replace", "--filename=-", stdin=json.dumps(loose))
        wait("the loose schema", lambda: bool(apply(garbage)))
    finally:
        kube.kubectl("apply", "--server-side", "--force-conflicts", f"--filename={DEFINITION}")
    wait("Stalled", lambda: condition("garbage", "Stalled") == ("True", "InvalidSpec"))
    told = next(item["message"] for item in status_of("garbage")["conditions"] if item["type"] == "Stalled")
    assert "spec.scaling" in told
    apply(manifest("beside"))
    wait("the others go on", lambda: get("deployment", "beside")["spec"]["replicas"] == 3)


def test_a_deleted_service_leaves_nothing() -> None:
    names = ("chat", "taken", "wrong", "garbage", "beside")
    kube.kubectl("delete", RESOURCE, *names, f"--namespace={NAMESPACE}")
    selector = "--selector=warmfront.dev/service"
    kinds = ",".join((*CHILDREN, "replicaset", "pod"))
    wait("nothing", lambda: not _exists(kinds, f"--namespace={NAMESPACE}", selector), seconds=60)
    time.sleep(3 * TICK_SECONDS)
    assert not _exists(kinds, f"--namespace={NAMESPACE}", selector)
