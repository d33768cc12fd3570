"""Plan, observation, memory, start-up times: what a pass works with."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warmfront_api import names
from warmfront_api.scaling import ScalingMode
from warmfront_api.status import ColdStartStatus, InferenceServiceStatus
from warmfront_forecaster.planning.types import Binding, Candidates, Decision, PastWant
from warmfront_operator.domain import coldstart, memory, observation, plan, resources
from warmfront_operator.domain.coldstart import ColdStarts, Sample
from warmfront_operator.domain.memory import Memory
from warmfront_operator.domain.resources import Deployment, Pod, Template

Make = Callable[..., Any]


def decision(desired: int, *, now: datetime, current: int = 1, act: bool = True, **fields: Any) -> Decision:
    values: dict[str, Any] = {
        "time": now,
        "current": current,
        "desired": desired,
        "binding": Binding.REACTIVE,
        "reason": "DemandMeasured",
        "message": "because",
        "lead_time_seconds": 130.0,
        "candidates": Candidates(want=desired),
        "act": act,
    }
    return Decision(**{**values, **fields})


# what is applied


@pytest.mark.parametrize(
    ("stands", "needed"),
    [
        pytest.param(None, True, id="nothing stands yet"),
        pytest.param({}, False, id="it stands as rendered"),
        pytest.param({"applied_hash": "other"}, True, id="another rendering stands"),
        pytest.param({"owned_fields": "fewer"}, True, id="somebody took a field of ours"),
        pytest.param({"applied_fields": None}, True, id="the note of our fields is missing"),
        pytest.param({"applied_hash": "other", "deleting": True}, False, id="it is on its way out"),
    ],
)
def test_a_child_is_applied_when(make_deployment: Make, stands: dict[str, Any] | None, needed: bool) -> None:
    manifest = {"metadata": {"annotations": {names.ANNOTATION_APPLIED_HASH: "h"}}}
    child = None if stands is None else make_deployment(**stands)
    assert plan.needs_apply(manifest, child) is needed


@pytest.mark.parametrize(
    ("mode", "created", "act", "desired", "written"),
    [
        pytest.param("Active", False, True, 3, 3, id="active follows the decision"),
        pytest.param("Active", False, True, 2, None, id="active writes nothing when it is so already"),
        pytest.param("Advisory", False, False, 5, None, id="advisory leaves the replicas to others"),
        pytest.param("Advisory", True, False, 5, 4, id="advisory starts with the minimum"),
        pytest.param("Paused", False, True, 6, 6, id="paused writes what spec.replicas asks for"),
        pytest.param("Paused", False, False, 6, None, id="paused without a wish holds"),
    ],
)
def test_replicas_are_written_when(
    make_service: Make,
    make_deployment: Make,
    now: datetime,
    mode: str,
    created: bool,
    act: bool,
    desired: int,
    written: int | None,
) -> None:
    service = make_service(scaling__mode=mode, scaling__minReplicas=4)
    wanted = decision(desired, now=now, act=act)
    assert plan.replicas_to_write(service, make_deployment(replicas=2), wanted, created=created) == written


@pytest.mark.parametrize(
    ("new_pod_waits", "surging", "expected"),
    [
        pytest.param(None, True, True, id="the new pod has a node"),
        pytest.param(59, True, True, id="the new pod has waited for less than a minute"),
        pytest.param(60, True, False, id="the new pod has waited for a minute"),
        pytest.param(None, False, False, id="a rollout that takes away first stays so until it is through"),
    ],
)
def test_a_rollout_adds_a_pod_first_unless_there_is_no_room(
    make_deployment: Make, make_pod: Make, now: datetime, new_pod_waits: int | None, surging: bool, expected: bool
) -> None:
    deployment = make_deployment(template=Template(hash="new"), surge=surging)
    since = None if new_pod_waits is None else now - timedelta(seconds=new_pod_waits)
    fresh = make_pod(
        "b", ready_after=None, template_hash="new", unschedulable_since=since, unschedulable="no GPU" if since else ""
    )
    assert plan.surge(deployment, [make_pod("a", template_hash="old"), fresh], now) is expected


def test_without_a_rollout_a_pod_is_added_first_again(make_deployment: Make, make_pod: Make, now: datetime) -> None:
    assert plan.surge(make_deployment(surge=False), [make_pod()], now) is True


# what is seen


def test_pods_are_counted_by_what_they_are(make_deployment: Make, make_pod: Make) -> None:
    pods = [
        make_pod("warm"),
        make_pod("starting", ready_after=None),
        make_pod("stuck", ready_after=None, unschedulable="0/2 nodes"),
        make_pod("leaving", deleting=True),
        make_pod("evicted", ready_after=None, finished=True),
    ]
    seen = observation.counts(make_deployment(replicas=4), pods)
    assert (seen.wanted, seen.ready, seen.starting, seen.unschedulable, seen.rolling) == (4, 1, 1, 1, False)


def test_one_unschedulable_pod_is_no_rollout_but_a_pod_of_the_old_template_is(make_deployment: Make, make_pod: Make) -> None:
    stuck = make_pod("stuck", ready_after=None, unschedulable="0/2 nodes")
    assert not observation.rolling(make_deployment(), [make_pod(), stuck])
    assert observation.rolling(make_deployment(), [make_pod(template_hash="old"), stuck])
    assert not observation.rolling(make_deployment(), [make_pod(template_hash="old", deleting=True)])


def test_the_users_scaling_block_becomes_a_policy(make_service: Make) -> None:
    service = make_service(
        scaling__minReplicas=2,
        scaling__maxReplicas=9,
        scaling__fallback={"failureThreshold": 5, "replicas": 3},
        scaling__predictive={
            "mode": "Shadow",
            "maxStepPercent": 40,
            "leadTime": {"source": "Fixed", "percentile": 80, "marginSeconds": 7, "seconds": 99},
        },
    )
    policy = observation.policy(service, Memory())
    assert (policy.mode, policy.predictive, policy.min_replicas, policy.max_replicas) == ("Active", "Shadow", 2, 9)
    assert (policy.fallback_threshold, policy.fallback_replicas, policy.max_step_percent) == (5, 3, 40)
    lead = policy.lead_time
    assert (lead.measured, lead.percentile, lead.margin_seconds, lead.seconds) == (False, 80, 7.0, 99.0)
    assert observation.capacity(service).target_utilization == pytest.approx(0.5)


def test_views_of_raw_bodies_hold_what_decides() -> None:
    body = {
        "metadata": {
            "name": "chat-x",
            "namespace": "ml",
            "uid": "u",
            "creationTimestamp": "2026-03-02T08:00:00Z",
            "annotations": {"warmfront.dev/template-hash": "t9"},
        },
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-03-02T08:01:40Z"}],
            "initContainerStatuses": [{"restartCount": 1}],
            "containerStatuses": [{"restartCount": 2}],
        },
    }
    pod = resources.pod(body)
    assert (pod.ready, pod.restarts, pod.template_hash, pod.live) == (True, 3, "t9", True)
    assert pod.ready_since is not None
    assert (pod.ready_since - pod.created).total_seconds() == 100


def test_a_field_taken_by_another_manager_shows_in_the_owned_fields() -> None:
    ours = {"manager": names.FIELD_MANAGER, "operation": "Apply", "time": "2026-03-02T08:00:00Z"}
    whole = {"managedFields": [{**ours, "fieldsV1": {"f:spec": {"f:a": {}, "f:b": {}}}}]}
    later = {"managedFields": [{**ours, "time": "2026-03-02T09:00:00Z", "fieldsV1": {"f:spec": {"f:b": {}, "f:a": {}}}}]}
    robbed = {"managedFields": [{**ours, "fieldsV1": {"f:spec": {"f:a": {}}}}, {"manager": "kubectl", "operation": "Update"}]}
    assert resources.owned_fields(whole) == resources.owned_fields(later)
    assert resources.owned_fields(whole) != resources.owned_fields(robbed)


# what is remembered


@pytest.mark.parametrize(
    ("before", "mode", "spec_replicas", "stale"),
    [
        pytest.param(None, "Paused", 5, None, id="a service created as Paused obeys spec.replicas"),
        pytest.param("Active", "Paused", 5, 5, id="a value from before Paused is nobody's wish"),
        pytest.param("Active", "Paused", 3, None, id="a value that agrees is obeyed"),
        pytest.param("Active", "Paused", None, None, id="no value holds"),
        pytest.param("Paused", "Paused", 5, None, id="a value written while Paused is obeyed"),
        pytest.param("Active", "Active", 5, None, id="in Active it plays no part"),
    ],
)
def test_entering_paused(before: str | None, mode: str, spec_replicas: int | None, stale: int | None) -> None:
    known = Memory(mode=ScalingMode(before) if before else None)
    assert memory.entered(known, ScalingMode(mode), spec_replicas, wanted=3).stale_replicas == stale


def test_a_stale_value_is_held_until_it_changes() -> None:
    held = memory.entered(Memory(mode=ScalingMode.ACTIVE), ScalingMode.PAUSED, 5, wanted=3)
    again = memory.entered(held, ScalingMode.PAUSED, 5, wanted=3)
    assert again.stale_replicas == 5
    assert memory.entered(again, ScalingMode.PAUSED, 6, wanted=3).stale_replicas is None


def test_readings_are_counted_once_per_tick(now: datetime) -> None:
    tick = now
    once = memory.read(Memory(), demand_known=False, ticked_at=tick)
    assert once.failed_readings == 1
    assert memory.read(once, demand_known=False, ticked_at=tick).failed_readings == 1
    next_tick = tick + timedelta(seconds=15)
    assert memory.read(once, demand_known=False, ticked_at=next_tick).failed_readings == 2
    assert memory.read(once, demand_known=True, ticked_at=next_tick).failed_readings == 0


def test_a_decision_is_listed_when_the_wanted_replicas_change(now: datetime) -> None:
    first = memory.decided(Memory(), decision(2, now=now), now)
    same = memory.decided(first, decision(2, now=now, current=2), now)
    up = memory.decided(same, decision(5, now=now, current=2), now)
    assert [(entry.from_, entry.to) for entry in up.decisions] == [(2, 5), (0, 2)]
    assert up.last_desired == 5
    assert up.decisions[0].time == "2026-03-02T09:00:00Z"


@given(wants=st.lists(st.integers(1, 50), min_size=1, max_size=40))
def test_status_keeps_the_last_ten_decisions_newest_first(wants: list[int]) -> None:
    time = datetime.fromisoformat("2026-03-02T09:00:00Z")
    known = Memory()
    for step, wanted in enumerate(wants):
        at = time + timedelta(seconds=15 * step)
        known = memory.decided(known, decision(wanted, now=at), at)
    assert len(known.decisions) <= 10
    assert known.decisions[0].to == wants[-1]
    for newer, older in zip(known.decisions, known.decisions[1:], strict=False):
        assert newer.from_ == older.to
        assert newer.time > older.time


def test_a_restart_rebuilds_what_status_tells(now: datetime) -> None:
    known = memory.decided(Memory(last_desired=1), decision(4, now=now), now)
    stored = InferenceServiceStatus(
        desired_replicas=4,
        decisions=list(known.decisions),
        cold_start=ColdStartStatus(p50_seconds=80, p90_seconds=120, samples=9),
    )
    restored = memory.restored(stored, now)
    assert restored.last_desired == 4
    assert restored.changes == (PastWant(time=now, replicas=1), PastWant(time=now, replicas=4))
    assert coldstart.seconds(restored.cold_starts, "t1", [], now) == (80.0, 120.0)


@pytest.mark.parametrize(
    ("in_status", "in_deployment", "counted"),
    [(3, 3, 3), (2, 3, 3), (3, 2, 3), (None, 1, 1)],
    ids=["as status says", "the scale was written, its status not", "somebody lowered it meanwhile", "a new service"],
)
def test_ticks_before_a_restart_count_as_wanting_what_was_held(
    now: datetime, in_status: int | None, in_deployment: int, counted: int
) -> None:
    known = memory.unseen(Memory(last_desired=in_status), in_deployment, now)
    assert known.past_wants == (PastWant(time=now, replicas=counted),)


def test_what_this_process_saw_itself_is_not_overwritten(now: datetime) -> None:
    known = Memory(last_desired=5, past_wants=(PastWant(time=now, replicas=1),))
    assert memory.unseen(known, 5, now) is known


@pytest.mark.parametrize(("minutes", "another_decision", "due"), [(1, False, False), (1, True, True), (5, False, True)], ids=str)
def test_figures_are_due_with_a_decision_or_every_five_minutes(
    now: datetime, minutes: int, another_decision: bool, due: bool
) -> None:
    before = Memory(figures_at=now - timedelta(minutes=minutes), last_desired=2)
    after = memory.decided(before, decision(3 if another_decision else 2, now=now, current=2), now)
    assert memory.figures_due(after, before, now) is due


# start-up times


def measured(*seconds: float, template_hash: str | None = "t1") -> ColdStarts:
    samples = tuple(Sample(pod_uid=str(index), template_hash=template_hash, seconds=value) for index, value in enumerate(seconds))
    return ColdStarts(samples=samples, measured=frozenset(sample.pod_uid for sample in samples))


def test_a_pod_is_measured_once_from_its_creation_to_being_warm(make_pod: Make) -> None:
    once = coldstart.observe(ColdStarts(), [make_pod("a", ready_after=90), make_pod("b", ready_after=None)])
    assert [sample.seconds for sample in once.samples] == [90.0]
    flapped = coldstart.observe(once, [make_pod("a", ready_after=400), make_pod("b", ready_after=120)])
    assert [sample.seconds for sample in flapped.samples] == [90.0, 120.0]


def test_a_pod_that_was_restarted_before_it_was_seen_tells_nothing(make_pod: Make) -> None:
    assert coldstart.observe(ColdStarts(), [make_pod(ready_after=500, restarts=1)]).samples == ()


def test_samples_of_the_running_template_count_and_others_only_while_there_are_none(now: datetime) -> None:
    both = ColdStarts(samples=(*measured(60, template_hash="old").samples, *measured(200, template_hash="new").samples))
    assert coldstart.seconds(both, "new", [], now) == (200.0,)
    assert coldstart.seconds(both, "newer", [], now) == (60.0, 200.0)


@pytest.mark.parametrize(
    ("age", "fields", "counted"),
    [
        pytest.param(300, {}, True, id="longer than all that were measured: a lower bound"),
        pytest.param(80, {}, False, id="not yet longer: it says nothing"),
        pytest.param(300, {"unschedulable": "no node"}, False, id="without a node it has not begun to start"),
        pytest.param(300, {"deleting": True}, False, id="a pod that is leaving"),
    ],
)
def test_a_pod_still_starting_is_censored_not_dropped(
    make_pod: Make, now: datetime, age: float, fields: dict[str, Any], counted: bool
) -> None:
    pod: Pod = make_pod("late", age=age, ready_after=None, **fields)
    assert (float(age) in coldstart.seconds(measured(90, 100), "t1", [pod], now)) is counted


def test_percentiles_in_status_are_whole_seconds_by_nearest_rank() -> None:
    summary = coldstart.summary(measured(*[10.4 * step for step in range(1, 11)]), "t1")
    assert summary == ColdStartStatus(p50_seconds=52, p90_seconds=94, samples=10)
    assert coldstart.summary(ColdStarts(), "t1") is None


def test_a_deployments_view_tells_a_surging_rollout_from_one_that_takes_away_first() -> None:
    def view(surge: object) -> Deployment:
        body = {
            "metadata": {"name": "chat", "namespace": "ml", "uid": "u", "resourceVersion": "7"},
            "spec": {"replicas": 2, "strategy": {"rollingUpdate": {"maxSurge": surge}}},
            "status": {
                "replicas": 3,
                "conditions": [
                    {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "too slow"},
                    {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "exceeded quota"},
                ],
            },
        }
        return resources.deployment(body)

    assert view(0).surge is False
    seen = view(1)
    assert (seen.surge, seen.replicas, seen.total, seen.stuck, seen.failure) == (True, 2, 3, "too slow", "exceeded quota")
    assert replace(seen, replicas=1) != seen
