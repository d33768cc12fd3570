"""Both charts on a real API server, by the real Helm: taken, bound to the rights they ask for, and gone again."""

import json
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.support.kube import kubectl
from e2e.support.programs import Done, attempt, run

CHARTS = Path(__file__).parents[1] / "charts"
DEFINITION = "customresourcedefinition/inferenceservices.warmfront.dev"
RELEASE = "charttest"
OWNERSHIP = ("meta.helm.sh/release-name", "meta.helm.sh/release-namespace")
# A definition may be there already, from another release or from kubectl.
TAKE = ("--take-ownership", "--force-conflicts")

# What the pods do is the matter of other tests; here no node shall look for an image.
NEVER_PULLED = {"repository": "localhost/never", "pullPolicy": "Never"}


def owner() -> tuple[str, str] | None:
    """Release and namespace that the definition belongs to, empty without one; None: there is no definition."""
    done = attempt("kubectl", "get", DEFINITION, "--output", "json")
    if done.status != 0:
        return None
    annotations = json.loads(done.stdout)["metadata"].get("annotations", {})
    return annotations.get(OWNERSHIP[0], ""), annotations.get(OWNERSHIP[1], "")


def give_back(before: tuple[str, str] | None) -> None:
    """Make the definition what it was: gone, nobody's or another release's (by Helm itself, which looks at who wrote a field)."""
    if before is None:
        kubectl("delete", DEFINITION)
    elif before[0]:
        run("helm", "upgrade", before[0], str(CHARTS / "warmfront-crds"), "--namespace", before[1], *TAKE)
    else:
        kubectl("annotate", DEFINITION, *(f"{name}-" for name in OWNERSHIP))


@pytest.fixture(scope="module")
def namespace() -> Iterator[str]:
    """A namespace of our own that holds every pod to restricted Pod Security."""
    name = f"chart-{uuid.uuid4().hex[:8]}"
    kubectl("create", "namespace", name)
    kubectl("label", "namespace", name, "pod-security.kubernetes.io/enforce=restricted")
    yield name
    kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture(scope="module")
def definitions(namespace: str) -> Iterator[None]:
    """The chart of the definitions, installed; what was there before is there again afterwards."""
    before = owner()
    run("helm", "install", "charttest-crds", str(CHARTS / "warmfront-crds"), "--namespace", namespace, *TAKE)
    yield
    attempt("helm", "uninstall", "charttest-crds", "--namespace", namespace)
    give_back(before)


@pytest.fixture(scope="module")
def release(namespace: str, definitions: None) -> str:  # noqa: ARG001 - it needs the kinds
    """The main chart, installed for this namespace only, so that another operator of the cluster keeps its own."""
    values = {
        "operator": {"watchNamespaces": [namespace], "image": NEVER_PULLED},
        "forecaster": {"image": NEVER_PULLED},
        "prometheus": {
            "url": "http://prometheus:9090",
            "tokenSecret": {"name": "token"},
            "ca": {"configMap": "ca"},
        },
        "networkPolicy": {"metricsFrom": [{"namespaceSelector": {}}]},
    }
    main = str(CHARTS / "warmfront")
    run("helm", "install", RELEASE, main, "--namespace", namespace, "--values", "-", stdin=json.dumps(values))
    return RELEASE


def may(account: str, verb: str, resource: str, namespace: str) -> bool:
    """Whether the API server would let a user or an account do it; `resource` is RESOURCE.GROUP or RESOURCE.GROUP/SUBRESOURCE."""
    name, _, part = resource.partition("/")
    arguments = ("--namespace", namespace, "--as", account, f"--subresource={part}")
    return attempt("kubectl", "auth", "can-i", verb, name, *arguments).stdout.strip() == "yes"


def create_pod(pod: dict[str, Any], namespace: str) -> Done:
    """Ask the API server whether it would take a pod."""
    arguments = ("--namespace", namespace, "--dry-run=server", "--filename", "-")
    return attempt("kubectl", "create", *arguments, stdin=json.dumps(pod))


def test_every_object_is_taken_as_it_is_rendered(release: str, namespace: str) -> None:
    rendered = [item for item in yaml.safe_load_all(run("helm", "get", "manifest", release, "--namespace", namespace)) if item]
    assert len(rendered) == 12
    for item in rendered:
        kubectl("get", item["kind"], item["metadata"]["name"], "--namespace", namespace)


def test_all_values_together_pass_strict_validation_by_the_server(namespace: str, definitions: None) -> None:  # noqa: ARG001
    values = {
        "prometheus": {"url": "https://p", "ca": {"secret": "ca"}, "tenant": {"header": "X-Scope-OrgID", "value": "ml"}},
        "operator": {"tolerations": [{"operator": "Exists"}], "nodeSelector": {"a": "b"}, "podAnnotations": {"c": "d"}},
        "imagePullSecrets": [{"name": "registry"}],
        "commonLabels": {"team": "ml"},
    }
    arguments = ("other", str(CHARTS / "warmfront"), "--namespace", namespace, "--values", "-")
    rendered = run("helm", "template", *arguments, stdin=json.dumps(values))
    said = kubectl("apply", "--dry-run=server", "--validate=strict", "--filename", "-", stdin=rendered)
    assert said.count("(server dry run)") == 12


@pytest.mark.parametrize("component", ["operator", "forecaster"])
def test_the_pods_pass_restricted_pod_security(release: str, namespace: str, component: str) -> None:
    name = f"{release}-warmfront-{component}"
    deployment = json.loads(kubectl("get", "deployment", name, "--namespace", namespace, "--output", "json"))
    pod: dict[str, Any] = deployment["spec"]["template"] | {"apiVersion": "v1", "kind": "Pod"}
    pod["metadata"] |= {"name": "probe"}
    done = create_pod(pod, namespace)
    assert done.status == 0, done.stderr
    pod["spec"]["hostNetwork"] = True
    assert "violates PodSecurity" in create_pod(pod, namespace).stderr


def test_the_operator_may_do_its_work_in_its_namespaces_and_nothing_else(release: str, namespace: str) -> None:
    account = f"system:serviceaccount:{namespace}:{release}-warmfront-operator"
    allowed = [
        ("watch", "inferenceservices.warmfront.dev"),
        ("patch", "inferenceservices.warmfront.dev/status"),
        ("patch", "deployments.apps/scale"),
        ("create", "serviceaccounts"),
        ("create", "events.events.k8s.io"),
    ]
    forbidden = [
        ("get", "secrets"),
        ("patch", "inferenceservices.warmfront.dev"),
        ("create", "pods"),
        ("create", "pods/exec"),
        ("delete", "pods"),
        ("create", "roles.rbac.authorization.k8s.io"),
        ("impersonate", "users"),
    ]
    assert [pair for pair in allowed if not may(account, *pair, namespace)] == []
    assert [pair for pair in forbidden if may(account, *pair, namespace)] == []
    assert not may(account, "watch", "inferenceservices.warmfront.dev", "kube-system")


def test_the_forecaster_may_do_nothing(release: str, namespace: str) -> None:
    account = f"system:serviceaccount:{namespace}:{release}-warmfront-forecaster"
    assert not may(account, "list", "pods", namespace)
    assert not may(account, "list", "inferenceservices.warmfront.dev", namespace)


@pytest.mark.usefixtures("release")
def test_whoever_edits_a_namespace_edits_its_services(namespace: str) -> None:
    for role in ("view", "edit"):
        kubectl("create", "rolebinding", role, "--clusterrole", role, "--user", f"{role}er", "--namespace", namespace)
    # Aggregation is the controller manager's: it takes a moment.
    deadline = time.monotonic() + 30
    while not may("editer", "create", "inferenceservices.warmfront.dev", namespace):
        assert time.monotonic() < deadline, "the role edit never got the rights of the chart's"
        time.sleep(0.5)
    assert may("editer", "patch", "inferenceservices.warmfront.dev/scale", namespace)
    assert not may("editer", "patch", "inferenceservices.warmfront.dev/status", namespace)
    assert may("viewer", "watch", "inferenceservices.warmfront.dev", namespace)
    assert not may("viewer", "create", "inferenceservices.warmfront.dev", namespace)


def test_uninstalling_removes_everything_but_the_definitions_and_the_services(release: str, namespace: str) -> None:
    sample = Path(__file__).parents[1] / "crds" / "samples" / "good" / "minimal.yaml"
    kubectl("apply", "--namespace", namespace, "--filename", str(sample))
    said = run("helm", "uninstall", release, "--namespace", namespace)
    assert "uninstalled" in said
    kinds = "deployments,services,serviceaccounts,roles,rolebindings,networkpolicies"
    ours = f"app.kubernetes.io/instance={release}"
    assert kubectl("get", kinds, "--namespace", namespace, "--selector", ours, "--output", "name") == ""
    kept = attempt("helm", "uninstall", "charttest-crds", "--namespace", namespace)
    assert "kept" in kept.stdout + kept.stderr
    assert "minimal" in kubectl("get", "inferenceservices.warmfront.dev", "--namespace", namespace, "--output", "name")
    run("helm", "install", "charttest-again", str(CHARTS / "warmfront-crds"), "--namespace", namespace, *TAKE)
    run("helm", "uninstall", "charttest-again", "--namespace", namespace)
