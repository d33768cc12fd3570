"""The main job, with everything in its place: real cluster, operator and forecaster as pods, real Prometheus, HTTP load.

One story, told in order: the tests share one installation, and each begins where the one before it ended.
"""

import asyncio
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pytest

from e2e.demo.rehearsal import TICK_SECONDS, quick_manifest, rehearsal
from e2e.demo.report import report_lines
from e2e.demo.stage import Stage
from e2e.demo.verdict import judge
from e2e.load.player import Target, open_session, send_one
from e2e.load.schedule import PlannedRequest
from e2e.localcluster.inside import existing_kubeconfig
from e2e.localcluster.layout import cache, cluster_paths
from e2e.support import kube
from e2e.support.audit import Write, writes
from e2e.support.errors import CommandError
from e2e.support.install import NAMESPACE as OPERATOR_NAMESPACE
from e2e.support.readings import condition, ticks_done
from e2e.support.service import Watched, operator_metrics
from warmfront_api.names import FIELD_MANAGER_SCALE

NAMESPACE: Final = "main-job"
QUIET: Final = "quiet"
SECONDS_TO_JUMP: Final = 290.0
PLAYED_SECONDS: Final = 60.0
IDLE_TICKS: Final = 10
DRAIN_SECONDS: Final = 150.0  # a pod may take 135 s to go: 5 s of routing, 120 s of drain, 10 s to exit
OPERATOR_USERS: Final = f"system:serviceaccount:{OPERATOR_NAMESPACE}:"


@dataclass(frozen=True, kw_only=True)
class Running:
    """The installation: its stage, and what to add to trace times to get unix seconds."""

    stage: Stage
    shift: float

    @property
    def jump_at(self) -> float:
        """When the jump comes, unix seconds."""
        return self.stage.scenario.jump_seconds + self.shift


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    scenario = rehearsal(name="chat", namespace=NAMESPACE, seconds_to_jump=SECONDS_TO_JUMP, played_seconds=PLAYED_SECONDS)
    workspace = tmp_path_factory.mktemp("main-job")
    stage = Stage(scenario=scenario, workspace=workspace, tell=print, show=lambda *_: None, tick_seconds=TICK_SECONDS)
    kube.apply_objects({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": QUIET}})
    try:
        yield Running(stage=stage, shift=stage.prepare())
    finally:
        for namespace in (NAMESPACE, QUIET):
            kube.kubectl("delete", "namespace", namespace, "--wait=false", "--ignore-not-found")


def test_an_applied_service_becomes_ready_and_streams_a_completion_through_its_service(running: Running) -> None:
    watched = running.stage.watched
    assert condition(watched.resource(), "Ready")["reason"] == "Warm"
    request = PlannedRequest(number=0, at_seconds=0, prompt_tokens=50, output_tokens=12)
    target = Target(url=f"http://{kube.service_address(watched.namespace, watched.name)}", model="demo-chat")

    async def ask() -> Any:
        async with open_session() as session:
            return await send_one(session, target, request, origin=time.time())

    record = asyncio.run(ask())
    assert (record.status, record.error, record.output_chunks) == (200, None, 12)
    assert record.first_token_at < record.ended_at - 0.2  # streamed: twelve steps of 32 ms lie between first and last token


def test_the_forecast_became_trusted_on_history_from_before_the_service(running: Running) -> None:
    resource = running.stage.watched.resource()
    assert resource["status"]["forecast"]["state"] == "Trusted"
    assert condition(resource, "ForecastReady")["status"] == "True"


def test_an_invalid_service_is_refused_when_it_is_applied(running: Running) -> None:
    assert running
    manifest = quick_manifest(name="invalid", namespace=QUIET)
    manifest["spec"]["scaling"]["minReplicas"] = 9
    with pytest.raises(CommandError, match=r"scaling\.minReplicas must not be above scaling\.maxReplicas"):
        kube.apply_manifest(manifest)


@pytest.mark.skipif(existing_kubeconfig() is not None, reason="the audit log is the test cluster's own")
def test_ten_ticks_with_nothing_changed_write_nothing(running: Running) -> None:
    assert running
    applied_at = time.time()
    kube.apply_manifest(quick_manifest(name="idle", namespace=QUIET, predictive="Off"))
    idle = Watched(namespace=QUIET, name="idle")
    kube.wait_for("the idle service is Ready", lambda: _true_or_none(idle, "Ready"), seconds=120)
    _pass_ticks(3)  # status settles: the tick that saw it Ready has still to write what it saw
    start = time.time()
    _pass_ticks(IDLE_TICKS)
    assert _operator_writes(start, time.time()) == []
    assert _operator_writes(applied_at, start), "the log shows no write of the operator at all: it cannot prove anything"


def test_replicas_are_warm_before_a_jump_that_the_forecast_knows_and_gitops_changes_nothing(running: Running) -> None:
    assert running.jump_at - time.time() > 100, "set-up took too long for the forecast to act: raise SECONDS_TO_JUMP"

    async def both() -> tuple[Any, list[Reapplied]]:
        performing = asyncio.create_task(running.stage.perform(running.shift))
        reapplied = await asyncio.to_thread(_reapply_while_scaling, running)
        return await performing, reapplied

    (evidence, _), reapplied = asyncio.run(both())
    verdict = judge(evidence)
    print("\n".join(report_lines(verdict)))
    assert verdict.problems == []
    assert {replica.replica for replica in verdict.replicas} == {2, 3}
    assert all((replica.slack_seconds or 0) > 0 for replica in verdict.replicas)
    _assert_nothing_changed(reapplied)


def test_replicas_were_written_by_the_scaler_alone(running: Running) -> None:
    deployment = kube.get("deployment", "chat", f"--namespace={NAMESPACE}", "--show-managed-fields")
    owners = [
        entry["manager"]
        for entry in deployment["metadata"]["managedFields"]
        if "f:replicas" in entry.get("fieldsV1", {}).get("f:spec", {})
    ]
    assert running
    assert owners == [FIELD_MANAGER_SCALE]


def test_deleting_the_service_leaves_nothing(running: Running) -> None:
    assert running
    kube.kubectl("delete", "inferenceservices.warmfront.dev", "chat", "--namespace", NAMESPACE, "--wait=true")
    kube.wait_for("nothing is left of the service", lambda: _gone(NAMESPACE), seconds=DRAIN_SECONDS)


@dataclass(frozen=True, kw_only=True)
class Reapplied:
    """Before and after one re-apply: the service, and the replicas of its Deployment."""

    before: dict[str, Any]
    after: dict[str, Any]
    replicas_before: int
    replicas_after: int


def _reapply_while_scaling(running: Running) -> list[Reapplied]:
    """Apply the same manifest again and again between the scale-up and the jump."""
    watched, manifest = running.stage.watched, running.stage.scenario.manifest
    seconds = running.jump_at - time.time()
    kube.wait_for("the scale-up ahead of the jump", lambda: watched.deployment()["spec"]["replicas"] > 1 or None, seconds=seconds)
    rounds = []
    for _ in range(5):
        before, replicas = _service(watched), watched.deployment()["spec"]["replicas"]
        kube.apply_manifest(manifest)
        after = _service(watched)
        now = watched.deployment()["spec"]["replicas"]
        rounds.append(Reapplied(before=before, after=after, replicas_before=replicas, replicas_after=now))
        time.sleep(1)
    return rounds


def _assert_nothing_changed(rounds: list[Reapplied]) -> None:
    for each in rounds:
        assert each.after["metadata"]["generation"] == each.before["metadata"]["generation"]
        assert _spec_managers(each.after) == _spec_managers(each.before)
        assert each.replicas_after >= each.replicas_before > 1
    undisturbed = [each for each in rounds if each.before.get("status") == each.after.get("status")]
    assert undisturbed, "each re-apply met a status write; nothing can be said about the resource version"
    for each in undisturbed:
        assert each.after["metadata"]["resourceVersion"] == each.before["metadata"]["resourceVersion"]


def _service(watched: Watched) -> dict[str, Any]:
    return kube.get("inferenceservices.warmfront.dev", watched.name, f"--namespace={watched.namespace}", "--show-managed-fields")


def _spec_managers(resource: dict[str, Any]) -> list[str]:
    entries = [entry for entry in resource["metadata"]["managedFields"] if entry.get("subresource") != "status"]
    return sorted(json.dumps(entry, sort_keys=True) for entry in entries)


def _true_or_none(watched: Watched, kind: str) -> bool | None:
    return True if condition(watched.resource(), kind)["status"] == "True" else None


def _pass_ticks(count: int) -> None:
    until = ticks_done(operator_metrics()) + count
    kube.wait_for(f"{count} ticks", lambda: ticks_done(operator_metrics()) >= until or None, seconds=count * TICK_SECONDS * 3)


def _operator_writes(start: float, end: float) -> list[Write]:
    """What the operator wrote for the idle service."""
    found = writes(cluster_paths(cache()).audit_log, user_prefix=OPERATOR_USERS, start=start, end=end)
    return [write for write in found if write.namespace == QUIET]


def _gone(namespace: str) -> bool | None:
    kinds = "deployments,replicasets,pods,services,endpointslices,configmaps,serviceaccounts,secrets,poddisruptionbudgets"
    names = kube.kubectl("get", kinds, "--namespace", namespace, "--output=name").split()
    kept_by_kubernetes = {"configmap/kube-root-ca.crt", "serviceaccount/default"}
    return True if set(names) <= kept_by_kubernetes else None
