"""Whole passes: what a user sees of the operator, against an API server in memory."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest

from warmfront_api import names
from warmfront_forecaster.contract import ServiceForecast
from warmfront_forecaster.planning.types import DemandReading, ForecastState
from warmfront_operator.domain import resources
from warmfront_operator.domain.observation import DemandView, ForecastView
from warmfront_operator.domain.resources import ChildKind, Pod, ServiceKey
from warmfront_operator.domain.template import GatewayImage
from warmfront_operator.kube.client import Kube
from warmfront_operator.kube.events import Recorder
from warmfront_operator.reconcile import Readings, Reconciler

Make = Callable[..., Any]

# Half of a replica may be used: 10,000 prompt and 1,000 output tokens per second.
ONE_REPLICA = DemandReading(arrivals_per_second=1.0, prompt_tokens=1000.0, output_tokens=200.0)  # d = 0.1 + 0.2
FOUR_REPLICAS = DemandReading(arrivals_per_second=6.0, prompt_tokens=1000.0, output_tokens=200.0)  # d = 1.8
TRUSTED = ServiceForecast(
    namespace="ml",
    name="chat",
    state=ForecastState.TRUSTED,
    reason="SkillShown",
    message="",
    upper=1.4,
    median=1.0,
    max_demand_seen=5.0,
)
GATEWAY = GatewayImage(image="gw:1", pull_policy="IfNotPresent")


@dataclass
class World:
    """An operator, its API server, and a clock that passes a tick at a time."""

    api: Any
    kube: Kube
    now: datetime
    make_pod: Make
    warm: int = 1
    operator: Reconciler = field(init=False)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """A new operator that knows only what the API server tells."""
        self.operator = Reconciler(
            kube=self.kube, observed=self.api.observed(), recorder=Recorder(self.kube), gateway=GATEWAY, tick_seconds=15.0
        )

    def pods(self) -> tuple[Pod, ...]:
        deployment = self.api.objects.get(("Deployment", "ml", "chat"))
        if not deployment:
            return ()
        template, total = resources.deployment(deployment).template.hash, deployment["spec"]["replicas"]
        return tuple(
            self.make_pod(f"chat-{number}", ready_after=100 if number < self.warm else None, template_hash=template)
            for number in range(total)
        )

    async def tick(
        self,
        demand: DemandReading | None = ONE_REPLICA,
        forecast: ServiceForecast | None = None,
        *,
        error: str = "",
        ticks: int = 1,
    ) -> None:
        """Passes in which the watches have caught up."""
        for _ in range(ticks):
            self.now += timedelta(seconds=15)
            self.operator.observed.indices = self.api.observed(self.pods()).indices
            raw = self.api.get(names.KIND)
            readings = Readings(
                demand=DemandView(reading=demand, error=error),
                forecast=ForecastView(answer=forecast, reason="ForecasterUnavailable", message="away"),
                ticked_at=self.now,
            )
            await self.operator.reconcile(raw, readings, self.now)

    @property
    def replicas(self) -> int:
        return int(self.api.get("Deployment")["spec"]["replicas"])

    @property
    def status(self) -> dict[str, Any]:
        return dict(self.api.get(names.KIND)["status"])

    def condition(self, kind: str) -> tuple[str, str]:
        return next((item["status"], item["reason"]) for item in self.status["conditions"] if item["type"] == kind)

    def edit(self, **changes: Any) -> None:
        """The user changes the spec; all else stays."""
        stored = self.api.get(names.KIND)
        spec = {**stored["spec"], **{key: value for key, value in changes.items() if key != "scaling"}}
        spec["scaling"] = {**spec["scaling"], **changes.get("scaling", {})}
        metadata = {**stored["metadata"], "generation": stored["metadata"]["generation"] + 1}
        self.api.put({**stored, "spec": spec, "metadata": metadata})


@pytest.fixture
def world(api: Any, kube: Kube, now: datetime, make_pod: Make, raw_service: Make) -> Callable[..., World]:
    def build(**changes: Any) -> World:
        api.put(raw_service(**changes))
        return World(api=api, kube=kube, now=now, make_pod=make_pod)

    return build


async def test_one_pass_makes_everything(world: Make) -> None:
    here = world(scaling__minReplicas=3)
    await here.tick(None)
    assert {kind for kind, *_ in here.api.objects} == {names.KIND, "Event", *map(str, ChildKind)}
    assert here.replicas == 3
    scale_writes = [write for write in here.api.writes if write[1] == "Deployment/scale"]
    assert len(scale_writes) == 1
    assert len(here.status["conditions"]) == 9
    assert here.status["selector"] == "warmfront.dev/service=chat"
    assert here.condition("Ready") == ("False", "NoWarmPod")
    assert "Created" in here.api.events()


async def test_ten_ticks_with_nothing_changed_write_nothing(world: Make) -> None:
    here = world()
    await here.tick(ticks=3)
    here.api.writes.clear()
    await here.tick(ticks=10)
    assert here.api.writes == []
    assert here.condition("Ready") == ("True", "Warm")


async def test_ten_ticks_after_a_restart_write_nothing_either(world: Make) -> None:
    here = world()
    await here.tick(ticks=3)
    here.restart()
    await here.tick(ticks=2)  # start-up samples are counted anew, which may show once
    here.api.writes.clear()
    await here.tick(ticks=10)
    assert here.api.writes == []


async def test_figures_that_move_every_tick_are_written_every_five_minutes(world: Make) -> None:
    here = world()
    for step in range(41):  # ten minutes
        await here.tick(forecast=TRUSTED.model_copy(update={"upper": 0.1 + step / 150}))
        if step == 2:
            here.api.writes.clear()
    assert [write[1] for write in here.api.writes] == ["InferenceService/status"] * 2


async def test_demand_that_grows_is_followed_by_one_write_per_pass(world: Make) -> None:
    here = world()
    await here.tick(ticks=2)
    here.api.writes.clear()
    await here.tick(FOUR_REPLICAS)
    assert here.replicas == 4
    assert [write[1] for write in here.api.writes].count("Deployment/scale") == 1
    assert not [write for write in here.api.writes if write[1] == "Deployment"]
    assert here.status["desiredReplicas"] == 4
    decision = here.status["lastDecision"]
    assert (decision["from"], decision["to"], decision["binding"]) == (1, 4, "Reactive")
    assert "ScaledUp" in here.api.events()
    assert here.condition("Ready") == ("True", "Warm")


async def test_a_trusted_forecast_scales_before_the_demand_is_there(world: Make) -> None:
    here = world()
    await here.tick(ticks=2)
    await here.tick(ONE_REPLICA, TRUSTED)
    assert here.replicas == 3  # 1.4 / 0.5
    assert here.status["lastDecision"]["binding"] == "Predictive"
    assert here.status["forecast"]["state"] == "Trusted"


async def test_without_the_forecaster_the_operator_goes_on_to_react_and_says_why(world: Make) -> None:
    here = world()
    await here.tick(ticks=2)
    await here.tick(FOUR_REPLICAS, None)
    assert here.replicas == 4
    assert here.condition("ForecastReady") == ("False", "ForecasterUnavailable")
    assert here.condition("ScalingActive") == ("True", "DemandKnown")


async def test_without_prometheus_replicas_are_held_and_then_raised_to_the_floor(world: Make) -> None:
    here = world(scaling__fallback={"failureThreshold": 3, "replicas": 2})
    await here.tick(ticks=2)
    await here.tick(None, error="Prometheus did not answer", ticks=2)
    assert here.replicas == 1
    assert here.condition("ScalingActive") == ("False", "PrometheusUnavailable")
    await here.tick(None, error="Prometheus did not answer")
    assert here.replicas == 2
    await here.tick(None, error="Prometheus did not answer", ticks=5)
    assert here.replicas == 2


async def test_an_operator_that_restarts_in_the_middle_of_a_scale_up_does_not_scale_twice(world: Make) -> None:
    here = world()
    await here.tick(ticks=2)
    await here.tick(FOUR_REPLICAS)
    here.restart()
    here.api.writes.clear()
    await here.tick(FOUR_REPLICAS, ticks=3)
    assert here.replicas == 4
    assert not [write for write in here.api.writes if write[1] == "Deployment/scale"]
    assert [decision["to"] for decision in here.status["decisions"]] == [4, 1]


async def test_an_operator_that_restarts_does_not_cancel_pods_that_were_just_ordered(world: Make) -> None:
    here = world()
    await here.tick(ticks=2)
    await here.tick(FOUR_REPLICAS)
    here.restart()
    await here.tick(ONE_REPLICA, ticks=4)
    assert here.replicas == 4
    await here.tick(ONE_REPLICA, ticks=20)  # the down-window of 300 s has passed
    assert here.replicas == 1


async def test_an_operator_that_died_before_the_write_makes_up_for_it(world: Make) -> None:
    here = world()
    await here.tick(ticks=2)
    here.api.refuse["PATCH", "Deployment/scale"] = 503
    await here.tick(FOUR_REPLICAS)
    assert here.condition("AbleToScale") == ("False", "ScaleRefused")
    here.restart()
    here.api.refuse.clear()
    await here.tick(FOUR_REPLICAS)
    assert here.replicas == 4
    assert here.condition("AbleToScale") == ("True", "ReadyForNewScale")


async def test_a_deployment_that_somebody_deleted_comes_back_with_its_replicas(world: Make) -> None:
    here = world()
    await here.tick(ticks=2)
    await here.tick(FOUR_REPLICAS)
    here.now += timedelta(seconds=30)
    del here.api.objects["Deployment", "ml", "chat"]
    await here.tick(None)
    assert here.replicas == 4


async def test_a_change_by_hand_goes_back(world: Make) -> None:
    here = world()
    await here.tick(ticks=2)
    here.now += timedelta(seconds=30)
    deployment = here.api.get("Deployment")
    entry = {**deployment["metadata"]["managedFields"][0], "fieldsV1": {"f:spec": {}}}  # kubectl took the rest from us
    edited = {**deployment["spec"], "progressDeadlineSeconds": 1}
    here.api.put({**deployment, "spec": edited, "metadata": {**deployment["metadata"], "managedFields": [entry]}})
    await here.tick()
    assert here.api.get("Deployment")["spec"]["progressDeadlineSeconds"] > 1
    assert here.replicas == 1


async def test_re_applying_the_same_manifest_while_scaled_changes_nothing(world: Make) -> None:
    here = world()
    await here.tick(ticks=2)
    await here.tick(FOUR_REPLICAS)
    before = {key: body["metadata"]["resourceVersion"] for key, body in here.api.objects.items()}
    here.api.put(here.api.get(names.KIND))  # the same again: no new generation
    here.api.objects[names.KIND, "ml", "chat"]["metadata"]["resourceVersion"] = before[names.KIND, "ml", "chat"]
    await here.tick(FOUR_REPLICAS, ticks=3)
    assert {key: body["metadata"]["resourceVersion"] for key, body in here.api.objects.items()} == before
    assert here.replicas == 4


@pytest.mark.parametrize("kind", list(ChildKind), ids=str)
async def test_a_name_that_is_taken_stalls_and_is_never_written(world: Make, kind: ChildKind) -> None:
    here = world()
    theirs = here.api.put({"kind": str(kind), "metadata": {"name": "chat", "namespace": "ml"}, "spec": {"replicas": 7}})
    await here.tick(None, ticks=3)
    assert here.api.get(str(kind)) == theirs
    assert here.condition("Stalled") == ("True", "NameTaken")
    assert here.condition("Ready") == ("False", "NameTaken")
    assert here.api.events() == ["NameTaken"]
    if kind is not ChildKind.DEPLOYMENT:
        assert ("Deployment", "ml", "chat") not in here.api.objects


async def test_a_child_that_is_refused_stalls_and_is_asked_for_again_but_seldom(world: Make) -> None:
    here = world()
    here.api.refuse["PATCH", "PodDisruptionBudget"] = 403
    await here.tick(None, ticks=3)
    assert here.condition("Stalled") == ("True", "ChildRefused")
    assert [write[1] for write in here.api.writes].count("PodDisruptionBudget") == 1
    here.api.refuse.clear()
    await here.tick(None, ticks=5)
    assert here.condition("Stalled") == ("False", "UpToDate")


async def test_an_api_server_in_trouble_is_retried_without_stalling(world: Make) -> None:
    here = world()
    here.api.refuse["PATCH", "ConfigMap"] = 500
    await here.tick(None)
    assert here.condition("Reconciling") == ("True", "Retrying")
    assert here.condition("Stalled") == ("False", "UpToDate")
    here.api.refuse.clear()
    await here.tick(None)
    assert here.replicas == 1


async def test_a_stored_spec_that_is_garbage_stalls_and_leaves_what_runs(world: Make) -> None:
    here = world()
    await here.tick(ticks=2)
    here.edit(scaling={"maxReplicas": "many"}, engine={"image": ""})
    here.api.writes.clear()
    await here.tick(FOUR_REPLICAS, ticks=3)
    assert here.condition("Stalled") == ("True", "InvalidSpec")
    message = next(item["message"] for item in here.status["conditions"] if item["type"] == "Stalled")
    assert "spec.engine.image" in message
    assert "spec.scaling.maxReplicas" in message
    assert here.replicas == 1
    assert {write[1] for write in here.api.writes} == {"InferenceService/status", "Event"}
    assert [write[1] for write in here.api.writes].count("InferenceService/status") == 1


@pytest.mark.parametrize("stored", [{"desiredReplicas": "x"}, {"conditions": [{"type": 1}]}, None], ids=str)
async def test_a_stored_status_that_is_garbage_is_written_anew(world: Make, stored: Any) -> None:
    here = world()
    here.api.put({**here.api.get(names.KIND), "status": stored})
    await here.tick()
    assert here.status["desiredReplicas"] == 1


async def test_a_service_that_is_being_deleted_is_left_alone(world: Make) -> None:
    here = world()
    await here.tick(ticks=2)
    stored = here.api.get(names.KIND)
    here.api.put({**stored, "metadata": {**stored["metadata"], "deletionTimestamp": "2026-03-02T09:01:00Z"}})
    for kind in ChildKind:
        del here.api.objects[str(kind), "ml", "chat"]
    here.api.writes.clear()
    await here.tick(FOUR_REPLICAS)
    assert here.api.writes == []


async def test_a_service_that_is_gone_unseen_is_not_served_again(world: Make) -> None:
    here = world()
    await here.tick(ticks=2)
    raw = here.api.objects.pop((names.KIND, "ml", "chat"))
    here.operator.observed.indices = here.api.observed(here.pods()).indices
    here.operator.observed.indices.services[ServiceKey("ml", "chat")] = [raw]
    demand = Readings(demand=DemandView(reading=FOUR_REPLICAS), forecast=ForecastView(), ticked_at=here.now)
    await here.operator.reconcile(raw, demand, here.now + timedelta(minutes=6))
    assert here.operator.observed.keys() == []


async def test_advisory_starts_with_the_minimum_and_then_others_rule(world: Make) -> None:
    here = world(scaling__mode="Advisory", scaling__minReplicas=2)
    await here.tick(None)
    assert here.replicas == 2
    here.api.put({**here.api.get("Deployment"), "spec": {**here.api.get("Deployment")["spec"], "replicas": 5}})
    here.api.writes.clear()
    await here.tick(FOUR_REPLICAS, ticks=3)
    assert here.replicas == 5
    assert not [write for write in here.api.writes if write[1] == "Deployment/scale"]
    assert here.status["desiredReplicas"] == 4
    assert here.condition("ScalingActive") == ("False", "Advisory")


async def test_paused_obeys_what_is_asked_while_paused_and_not_what_was_left_behind(world: Make) -> None:
    here = world(replicas=6)
    await here.tick(ticks=2)
    assert here.replicas == 1
    assert here.api.events().count("ReplicasIgnored") == 1
    here.edit(scaling={"mode": "Paused"})
    await here.tick(FOUR_REPLICAS, ticks=3)
    assert here.replicas == 1
    assert here.condition("ScalingActive") == ("False", "PausedHolding")
    here.edit(replicas=5)
    await here.tick(FOUR_REPLICAS)
    assert here.replicas == 5
    assert here.condition("ScalingActive") == ("False", "Paused")


async def test_a_new_template_rolls_the_pods_and_a_bound_does_not(world: Make) -> None:
    here = world()
    await here.tick(ticks=2)
    before = here.api.get("Deployment")["spec"]["template"]
    here.edit(scaling={"maxReplicas": 3})
    await here.tick()
    assert here.api.get("Deployment")["spec"]["template"] == before
    here.edit(engine={"image": "vllm/vllm-openai:v0.34.0"})
    await here.tick()
    assert here.api.get("Deployment")["spec"]["template"] != before
    assert here.replicas == 1


async def test_start_up_times_reach_status_and_the_lead_time(world: Make) -> None:
    here = world()
    await here.tick(ticks=3)
    assert here.status["coldStart"] == {"p50Seconds": 100, "p90Seconds": 100, "samples": 1}
    await here.tick(FOUR_REPLICAS)
    here.warm = 4
    await here.tick(FOUR_REPLICAS)
    assert here.status["coldStart"]["samples"] == 4
    here.restart()
    await here.tick(FOUR_REPLICAS)
    assert here.status["coldStart"]["p90Seconds"] == 100


# lastDecision


async def test_a_hold_ends_in_status_at_once_when_demand_is_back_and_is_no_change_of_replicas(world: Make) -> None:
    here = world()
    await here.tick(ticks=2)
    changes = here.status["decisions"]
    await here.tick(None, error="Prometheus did not answer")
    assert (here.status["lastDecision"]["binding"], here.status["lastDecision"]["reason"]) == ("Hold", "DemandUnknown")
    here.api.writes.clear()
    await here.tick(ticks=3)
    assert here.status["lastDecision"]["binding"] == "Reactive"
    assert here.status["lastDecision"]["time"] == "2026-03-02T09:01:00Z"
    assert (here.status["lastDecision"]["from"], here.status["lastDecision"]["to"]) == (1, 1)
    assert here.status["decisions"] == changes
    assert [write[1] for write in here.api.writes].count("InferenceService/status") == 1


async def test_the_fallback_floor_shows_at_once(world: Make) -> None:
    here = world()
    await here.tick(ticks=2)
    await here.tick(None, error="Prometheus did not answer", ticks=3)
    assert here.status["lastDecision"]["binding"] == "Fallback"


async def test_a_binding_that_moves_to_and_fro_is_written_with_the_five_minute_figures_only(world: Make) -> None:
    here = world(scaling__minReplicas=2)
    two = DemandReading(arrivals_per_second=3.0, prompt_tokens=1000.0, output_tokens=200.0)  # 0.9 needs two: Reactive
    await here.tick(ONE_REPLICA, ticks=2)
    assert here.status["lastDecision"]["binding"] == "Minimum"
    here.api.writes.clear()
    for step in range(16):  # four minutes
        await here.tick(two if step % 2 else ONE_REPLICA)
    assert here.api.writes == []
    await here.tick(two, ticks=4)
    assert here.status["lastDecision"]["binding"] == "Reactive"
    assert len(here.api.writes) == 1
