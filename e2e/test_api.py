"""The API on a real API server: good samples are taken, each bad one is refused in the words that its header gives."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.support.kube import kubectl
from e2e.support.programs import attempt

CRDS = Path(__file__).parents[1] / "crds"
GOOD = sorted((CRDS / "samples" / "good").glob("*.yaml"))
BAD = sorted((CRDS / "samples" / "bad").glob("*.yaml"))
RESOURCE = "inferenceservices.warmfront.dev"

# Paused and without replicas: an operator that is there starts nothing.
IDLE = {"mode": "Paused", "maxReplicas": 2, "capacity": {"prefillTokensPerSecond": 100, "decodeTokensPerSecond": 10}}


@pytest.fixture(scope="module", autouse=True)
def _definition() -> Iterator[None]:
    """The definition of this checkout. One that is there stays its release's; ours goes again, for Helm to install."""
    name = f"customresourcedefinition/{RESOURCE}"
    arguments = ("--server-side", "--force-conflicts", "--filename", str(CRDS / f"{RESOURCE}.yaml"))
    absent = attempt("kubectl", "get", name).status != 0
    if absent or attempt("kubectl", "diff", *arguments).status != 0:
        kubectl("apply", *arguments)
    kubectl("wait", "--for=condition=Established", name, "--timeout=30s")
    yield
    if absent:
        kubectl("delete", name)


@pytest.fixture(scope="module")
def namespace() -> Iterator[str]:
    """A namespace of our own."""
    name = f"api-{uuid.uuid4().hex[:8]}"
    kubectl("create", "namespace", name)
    yield name
    kubectl("delete", "namespace", name, "--wait=false")


def manifest(name: str) -> dict[str, Any]:
    """A small service that may be stored."""
    return {
        "apiVersion": "warmfront.dev/v1alpha1",
        "kind": "InferenceService",
        "metadata": {"name": name},
        "spec": {
            "replicas": 0,
            "model": {"name": "m", "source": "path:///m"},
            "engine": {"image": "localhost/never:1"},
            "scaling": IDLE,
        },
    }


def store(name: str, namespace: str) -> dict[str, Any]:
    """Apply `manifest` and return what the API server made of it."""
    kubectl("apply", "--namespace", namespace, "--filename", "-", stdin=json.dumps(manifest(name)))
    stored: dict[str, Any] = json.loads(kubectl("get", RESOURCE, name, "--namespace", namespace, "--output", "json"))
    return stored


def refusal(document: dict[str, Any], namespace: str) -> str:
    """What kubectl prints when the API server refuses a document; nothing is stored if it does not."""
    text = json.dumps(document)
    done = attempt("kubectl", "apply", "--namespace", namespace, "--dry-run=server", "--filename", "-", stdin=text)
    assert done.status != 0, f"taken: {done.stdout}"
    return done.stderr


@pytest.mark.parametrize("sample", GOOD, ids=lambda path: path.stem)
def test_a_good_sample_is_taken(sample: Path, namespace: str) -> None:
    said = kubectl("apply", "--namespace", namespace, "--dry-run=server", "--filename", str(sample))
    assert f"{sample.stem} created (server dry run)" in said


@pytest.mark.parametrize("sample", BAD, ids=lambda path: path.stem)
def test_a_bad_sample_is_refused_with_a_message_that_names_the_field_and_the_mend(sample: Path, namespace: str) -> None:
    [expected] = [line for line in sample.read_text().splitlines() if line.startswith("# refused: ")]
    *before, last = yaml.safe_load_all(sample.read_text())
    for document in before:
        kubectl("apply", "--namespace", namespace, "--filename", "-", stdin=json.dumps(document))
    assert expected.removeprefix("# refused: ") in refusal(last, namespace)
    for document in before:
        kubectl("delete", RESOURCE, document["metadata"]["name"], "--namespace", namespace)


@pytest.mark.parametrize("flag", ["--port", "--port=1", "--port=\n1", "--po=1", "--api_key=x", "--", "--h"])
def test_an_owned_flag_is_found_however_it_is_spelt(flag: str, namespace: str) -> None:
    document = manifest("flags")
    document["spec"]["engine"]["args"] = [flag]
    assert "engine.args must not set flags that Warmfront owns" in refusal(document, namespace)


@pytest.mark.parametrize("flag", ["--gpu-memory-utilization=0.92", "--model-impl=auto", "-tp=2", "auto", "--portal=x"])
def test_a_flag_that_only_looks_like_an_owned_one_is_taken(flag: str, namespace: str) -> None:
    document = manifest("flags")
    document["spec"]["engine"]["args"] = [flag]
    text = json.dumps(document)
    kubectl("apply", "--namespace", namespace, "--dry-run=server", "--filename", "-", stdin=text)


def test_defaults_are_stored_in_objects_that_were_left_out(namespace: str) -> None:
    spec = store("defaults", namespace)["spec"]
    assert spec["warmup"] == {"prompts": 3, "timeoutSeconds": 600}
    assert spec["drain"] == {"timeoutSeconds": 120}
    assert spec["gateway"]["limits"]["maxConcurrentRequests"] == 512
    assert spec["scaling"]["predictive"]["leadTime"] == {
        "source": "Measured",
        "percentile": 90,
        "marginSeconds": 30,
        "seconds": 300,
    }
    assert spec["scaling"]["fallback"] == {"failureThreshold": 3, "replicas": 1}
    assert "podTemplate" not in spec


def test_a_service_that_no_operator_has_seen_is_not_current(namespace: str) -> None:
    text = json.dumps(manifest("unseen"))
    out = kubectl("create", "--namespace", namespace, "--dry-run=server", "--filename", "-", "--output", "json", stdin=text)
    status = json.loads(out)["status"]
    assert status["observedGeneration"] == -1
    [ready] = status["conditions"]
    assert (ready["type"], ready["status"], ready["reason"]) == ("Ready", "Unknown", "Pending")


def test_the_short_name_and_the_category_list_services_with_our_columns(namespace: str) -> None:
    store("listed", namespace)
    for name in ("wfsvc", "warmfront", RESOURCE):
        header, *rows = kubectl("get", name, "--namespace", namespace).splitlines()
        columns = ["NAME", "READY", "DESIRED", "READY REPLICAS", "BINDING", "FORECAST", "NEXT PEAK", "AGE"]
        assert [column for column in columns if column in header] == columns
        assert any(row.startswith("listed ") for row in rows)


def test_columns_show_what_the_status_says(namespace: str) -> None:
    store("shown", namespace)
    time = "2026-01-02T03:04:05Z"
    status = {
        "observedGeneration": 1,
        "replicas": 4,
        "readyReplicas": 3,
        "desiredReplicas": 5,
        "selector": "warmfront.dev/service=shown",
        "forecast": {"state": "Trusted", "nextPeak": {"start": time, "end": time, "replicas": 6}},
        "lastDecision": {"time": time, "from": 4, "to": 5, "binding": "Predictive", "reason": "ForecastPeak"},
        "conditions": [{"type": "Ready", "status": "True", "reason": "Warm", "lastTransitionTime": time}],
    }
    shown = ["shown", "True", "5", "3", "Predictive", "Trusted", time]
    # An operator that is there writes what it sees, so a look may come too late: then again.
    assert any(columns_after(status, "shown", namespace)[:7] == shown for _ in range(5))


def columns_after(status: dict[str, Any], name: str, namespace: str) -> list[str]:
    """What `kubectl get` shows right after a status was written."""
    patch = json.dumps({"status": status})
    kubectl("patch", RESOURCE, name, "--namespace", namespace, "--subresource=status", "--type=merge", "--patch", patch)
    return kubectl("get", "wfsvc", name, "--namespace", namespace, "--no-headers").split()


def test_status_is_no_part_of_an_ordinary_write(namespace: str) -> None:
    store("plain", namespace)
    patch = json.dumps({"status": {"desiredReplicas": 99}})
    kubectl("patch", RESOURCE, "plain", "--namespace", namespace, "--type=merge", "--patch", patch)
    shown = kubectl("get", RESOURCE, "plain", "--namespace", namespace, "--output", "jsonpath={.status.desiredReplicas}")
    assert shown != "99"


def test_scale_writes_the_replicas_that_paused_obeys(namespace: str) -> None:
    store("scaled", namespace)
    path = f"/apis/warmfront.dev/v1alpha1/namespaces/{namespace}/inferenceservices/scaled/scale"
    assert json.loads(kubectl("get", "--raw", path))["spec"] == {}
    kubectl("scale", RESOURCE, "scaled", "--namespace", namespace, "--replicas", "1")
    assert json.loads(kubectl("get", "--raw", path))["spec"] == {"replicas": 1}


def test_explain_describes_every_step_of_a_path() -> None:
    said = kubectl("explain", f"{RESOURCE}.spec.scaling.capacity.decodeTokensPerSecond")
    assert "Output tokens that one replica generates per second" in said
