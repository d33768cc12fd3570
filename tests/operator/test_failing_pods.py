"""A pod that cannot start is told with its reason and what to check; one that is on its way is not."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from warmfront_api.status import ConditionType
from warmfront_operator.domain import checks
from warmfront_operator.domain.checks import Facts
from warmfront_operator.domain.resources import ANNOTATION_TEMPLATE_HASH, pod

Make = Callable[..., Any]


def told(facts: Facts, kind: ConditionType) -> tuple[str, str]:
    verdict = checks.verdicts(facts)[kind]
    return verdict.status, verdict.reason


def pod_body(name: str = "chat-abc", *, container: str = "engine", ready: bool = False, **status: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {"uid": name, "name": name, "creationTimestamp": "2026-03-02T08:50:00Z"}
    metadata["annotations"] = {ANNOTATION_TEMPLATE_HASH: "t1"}
    conditions_of = [{"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": "2026-03-02T08:50:00Z"}]
    statuses = [{"name": container, **status}]
    return {"metadata": metadata, "status": {"conditions": conditions_of, "initContainerStatuses": statuses}}


ENDED = {"terminated": {"reason": "OOMKilled", "exitCode": 137}}
RUNNING = {"running": {"startedAt": "2026-03-02T08:55:00Z"}}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        pytest.param(
            pod_body(state={"waiting": {"reason": "ImagePullBackOff", "message": "manifest unknown"}}),
            ("pod chat-abc: container engine: ImagePullBackOff: manifest unknown", "check engine.image"),
            id="the engine's image cannot be pulled",
        ),
        pytest.param(
            pod_body(container="gateway", state={"waiting": {"reason": "InvalidImageName"}}),
            ("container gateway: InvalidImageName", "gateway.image"),
            id="the gateway's image is no name",
        ),
        pytest.param(
            pod_body(state={"waiting": {"reason": "CreateContainerConfigError", "message": 'secret "hf" not found'}}),
            ('secret "hf" not found', "Secrets"),
            id="a secret is missing",
        ),
        pytest.param(
            pod_body(state={"waiting": {"reason": "CrashLoopBackOff"}}, lastState=ENDED, restartCount=1),
            ("OOMKilled, exit code 137", "kubectl logs --previous -c engine"),
            id="it crashes",
        ),
        pytest.param(
            pod_body(state=RUNNING, lastState=ENDED, restartCount=3),
            ("CrashLoopBackOff", "OOMKilled"),
            id="it runs between two crashes",
        ),
    ],
)
def test_a_pod_that_cannot_start_is_named_with_what_to_check(make_facts: Make, body: Any, words: tuple[str, ...]) -> None:
    found = checks.verdicts(make_facts(pods=(pod(body),)))
    ready, reconciling = found[ConditionType.READY], found[ConditionType.RECONCILING]
    assert (ready.status, ready.reason) == ("False", "PodFailing")
    assert (reconciling.status, reconciling.reason, reconciling.message) == ("True", "PodFailing", ready.message)
    assert all(word in ready.message for word in words)
    assert found[ConditionType.STALLED].status == "False"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(pod_body(state={"waiting": {"reason": "PodInitializing"}}), id="it is being made"),
        pytest.param(pod_body(state=RUNNING, lastState=ENDED, restartCount=1), id="it was restarted once"),
    ],
)
def test_a_pod_on_its_way_is_no_failure(make_facts: Make, body: Any) -> None:
    assert told(make_facts(pods=(pod(body),)), ConditionType.RECONCILING) == ("True", "NoWarmPod")


def test_a_failing_pod_beside_a_warm_one_leaves_ready(make_facts: Make, make_pod: Make) -> None:
    failing = pod(pod_body(state={"waiting": {"reason": "ErrImagePull"}}))
    assert told(make_facts(pods=(make_pod(), failing)), ConditionType.READY) == ("True", "Warm")


def test_a_rollout_names_its_own_failing_pod_and_not_an_old_one(make_facts: Make, make_pod: Make) -> None:
    failing = pod(pod_body(state={"waiting": {"reason": "ErrImagePull"}}))
    new = make_facts(pods=(make_pod(template_hash="t0"), failing))
    assert told(new, ConditionType.READY) == ("False", "PodFailing")
    old = make_facts(pods=(make_pod(), replace(failing, template_hash="t0")))
    assert told(old, ConditionType.READY) == ("False", "RolloutInProgress")


@pytest.mark.parametrize(
    ("act", "reconciling"), [(False, ("False", "NoReplicas")), (True, ("True", "NoWarmPod"))], ids=["advisory", "active"]
)
def test_no_pod_is_on_its_way_where_nothing_asks_for_one(make_facts: Make, act: bool, reconciling: tuple[str, str]) -> None:
    facts = make_facts(deployment={"replicas": 0, "total": 0}, pods=(), decision={"act": act, "desired": 2})
    assert told(facts, ConditionType.RECONCILING) == reconciling
    assert told(facts, ConditionType.READY) == ("False", reconciling[1])
