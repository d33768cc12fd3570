"""One pass over one service: observe -> decide -> apply -> report."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final

from pydantic import ValidationError

from warmfront_api.inferenceservice import InferenceService
from warmfront_api.status import InferenceServiceStatus
from warmfront_forecaster.planning import decide
from warmfront_operator import metrics
from warmfront_operator.domain import coldstart, events, manifests, memory, observation, plan, status
from warmfront_operator.domain.checks import Facts, Problem
from warmfront_operator.domain.conditions import turned
from warmfront_operator.domain.events import Event
from warmfront_operator.domain.memory import Memory
from warmfront_operator.domain.observation import DemandView, ForecastView, Seen
from warmfront_operator.domain.parsing import explain, parse_service
from warmfront_operator.domain.reasons import StateReason
from warmfront_operator.domain.resources import Child, ChildKind, Deployment, Pod, ServiceKey
from warmfront_operator.domain.template import GatewayImage
from warmfront_operator.errors import KubeError, NameTakenError, PredecessorError
from warmfront_operator.kube.apply import apply_child
from warmfront_operator.kube.client import Kube
from warmfront_operator.kube.events import Recorder
from warmfront_operator.kube.observe import Observed
from warmfront_operator.kube.scale import scale
from warmfront_operator.kube.status import write

LOG = logging.getLogger(__name__)

Json = Mapping[str, Any]

REFUSED_AGAIN: Final = timedelta(seconds=60)  # a refusal may be the operator's rights or a webhook: ask again, but seldom
NOT_FOUND: Final = 404


@dataclass(frozen=True, kw_only=True)
class Readings:
    """What a pass knows from outside the API server. `ticked_at` names the tick that read it."""

    demand: DemandView
    forecast: ForecastView
    ticked_at: datetime


@dataclass(frozen=True, kw_only=True)
class Shaped:
    """The children after a pass. `deployment` None: there is none of ours."""

    deployment: Deployment | None = None
    problem: Problem | None = None
    created: bool = False


@dataclass(frozen=True, kw_only=True)
class Pass:
    """One pass over one service: what it found, and when."""

    raw: Json
    key: ServiceKey
    previous: InferenceServiceStatus
    before: Memory
    now: datetime

    @property
    def uid(self) -> str:
        """UID of the service."""
        return str(self.raw["metadata"]["uid"])

    @property
    def generation(self) -> int:
        """Generation of the spec."""
        return int(self.raw["metadata"].get("generation", 0))


@dataclass(frozen=True, kw_only=True)
class _Refusal:
    rendered: str
    until: datetime
    problem: Problem


@dataclass(kw_only=True)
class Reconciler:
    """Keeps services as their specs say."""

    kube: Kube
    observed: Observed
    recorder: Recorder
    gateway: GatewayImage
    tick_seconds: float
    _memories: dict[str, Memory] = field(default_factory=dict)
    _refusals: dict[tuple[ChildKind, ServiceKey], _Refusal] = field(default_factory=dict)

    async def reconcile(self, raw: Json, readings: Readings, now: datetime) -> None:
        """One pass. Raises nothing that the API server does; what it did is in the status.

        Args:
            raw: the service as stored.
            readings: demand and forecast.
            now: the time of the pass.
        """
        if raw["metadata"].get("deletionTimestamp"):
            return  # garbage collection takes the children; whoever applies now only delays it
        previous = status.parse(raw.get("status"))
        key = ServiceKey(str(raw["metadata"]["namespace"]), str(raw["metadata"]["name"]))
        this = Pass(raw=raw, key=key, previous=previous, before=self.memory(raw, previous, now), now=now)
        try:
            service = parse_service(raw)
        except ValidationError as error:
            problem = Problem(reason=StateReason.INVALID_SPEC, message=explain(error))
            await self._report(this, Facts(service=None, memory=this.before, problem=problem), [])
            return
        facts, told = await self._serve(this, service, readings)
        await self._report(this, facts, told)

    def memory(self, raw: Json, previous: InferenceServiceStatus, now: datetime) -> Memory:
        """What is remembered of a service, rebuilt from its status where nothing is."""
        uid = str(raw["metadata"]["uid"])
        if uid not in self._memories:
            self._memories[uid] = memory.restored(previous, now)
        return self._memories[uid]

    def forget(self, key: ServiceKey, uid: str) -> None:
        """Drop what was kept of a service that is gone."""
        self._memories.pop(uid, None)
        self.observed.forget(key)
        metrics.forget(key)
        for entry in [entry for entry in self._refusals if entry[1] == key]:
            del self._refusals[entry]

    async def _serve(self, this: Pass, service: InferenceService, readings: Readings) -> tuple[Facts, list[Event]]:
        """Shape the children, decide, scale."""
        pods = self.observed.pods(this.key)
        shaped = await self._shape(service, pods, this.now)
        if shaped.deployment is None:
            return Facts(service=service, memory=this.before, problem=shaped.problem), []
        seen = Seen(
            service=service,
            deployment=shaped.deployment,
            pods=pods,
            demand=readings.demand,
            forecast=readings.forecast,
            now=this.now,
            tick_seconds=self.tick_seconds,
        )
        facts = _decided(seen, this.before, readings, shaped.problem)
        _show(this.key, facts)
        told = [events.created(service, shaped.deployment.uid)] if shaped.created else []
        return await self._scale(facts, told, created=shaped.created)

    async def _shape(self, service: InferenceService, pods: tuple[Pod, ...], now: datetime) -> Shaped:
        """Apply the children that differ. The Deployment waits until what its pods need stands."""
        key = _key(service)
        current = self._ours(service, now)
        inputs = manifests.Inputs(
            gateway=self.gateway,
            ready_pods=sum(pod.ready for pod in observation.live(pods)),
            surge=plan.surge(current, pods, now),
        )
        rendered = manifests.children(service, manifests.pinned(inputs, service, current))
        problem: Problem | None = None
        for kind in plan.order(rendered):
            if kind is ChildKind.DEPLOYMENT and problem:
                break
            problem = await self._apply(kind, key, rendered[kind], now) or problem
        deployment = self._ours(service, now)
        return Shaped(deployment=deployment, problem=problem, created=current is None and deployment is not None)

    def _ours(self, service: InferenceService, now: datetime) -> Deployment | None:
        found = self.observed.child(ChildKind.DEPLOYMENT, _key(service), now)
        mine = isinstance(found, Deployment) and found.controller_uid == service.uid and not found.deleting
        return found if mine and isinstance(found, Deployment) else None

    async def _apply(self, kind: ChildKind, key: ServiceKey, manifest: dict[str, Any], now: datetime) -> Problem | None:
        known = self.observed.child(kind, key, now)
        rendered = manifests.applied_hash(manifest)
        refusal = self._refusals.get((kind, key))
        if refusal and refusal.rendered == rendered and now < refusal.until:
            return refusal.problem
        if not _foreign(manifest, known) and not plan.needs_apply(manifest, known):
            return None
        try:
            self.observed.wrote_child(await apply_child(self.kube, kind, manifest, known), now)
        except NameTakenError as error:
            return Problem(reason=StateReason.NAME_TAKEN, message=str(error))
        except PredecessorError as error:
            return Problem(reason=StateReason.RETRYING, message=str(error))
        except KubeError as error:
            return self._failed(kind, key, rendered, error, now)
        self._refusals.pop((kind, key), None)
        return None

    def _failed(self, kind: ChildKind, key: ServiceKey, rendered: str, error: KubeError, now: datetime) -> Problem:
        if not error.refused:
            return Problem(reason=StateReason.RETRYING, message=f"the {kind} could not be applied, trying again: {error}")
        problem = Problem(reason=StateReason.CHILD_REFUSED, message=f"the API server refuses the {kind}: {error}")
        self._refusals[kind, key] = _Refusal(rendered=rendered, until=now + REFUSED_AGAIN, problem=problem)
        return problem

    async def _scale(self, facts: Facts, told: list[Event], *, created: bool) -> tuple[Facts, list[Event]]:
        """The one replica write of a pass."""
        service, seen, decision = facts.service, facts.seen, facts.decision
        if service is None or seen is None or decision is None:
            return facts, told
        wanted = plan.replicas_to_write(service, seen.deployment, decision, created=created)
        if wanted is None:
            return facts, told
        try:
            scaled = await scale(self.kube, seen.deployment, wanted)
        except KubeError as error:
            return replace(facts, scale_error=f"{wanted} replicas could not be written: {error}"), told
        self.observed.wrote_child(scaled, seen.now)
        event = events.scaled(service, decision, seen.deployment.replicas, wanted)
        LOG.info("%s/%s: %s", service.namespace, service.name, event.note)
        return replace(facts, seen=replace(seen, deployment=scaled)), [*told, event]

    async def _report(self, this: Pass, facts: Facts, told: list[Event]) -> None:
        """Write the status if it differs, then the Events."""
        due = memory.figures_due(facts.memory, this.before, this.now)
        rendered = status.render(facts, this.previous, name=this.key.name, generation=this.generation, now=this.now, refresh=due)
        stands = status.same(rendered, this.previous) or await self._write(this.key, this.uid, rendered, this.now)
        # Figures that were not written stay due.
        self._memories[this.uid] = replace(facts.memory, figures_at=this.now) if due and stands else facts.memory
        changed = events.of_conditions(this.uid, turned(this.previous.conditions, rendered.conditions)) if stands else []
        ignored = events.replicas_ignored(facts.service) if facts.service else None
        await self.recorder.record(this.raw, [*told, *changed, *([ignored] if ignored else [])], this.now)

    async def _write(self, key: ServiceKey, uid: str, rendered: InferenceServiceStatus, now: datetime) -> bool:
        try:
            body = await write(self.kube, key, rendered)
        except KubeError as error:
            if error.status == NOT_FOUND:
                self.observed.banish(uid)
            else:
                LOG.warning("%s/%s: the status could not be written: %s", *key, error)
                metrics.RECONCILE_ERRORS.labels("status").inc()
            return False
        self.observed.wrote_service(key, body, now)
        return True


def _key(service: InferenceService) -> ServiceKey:
    return ServiceKey(service.namespace, service.name)


def _foreign(manifest: Json, known: Child | None) -> bool:
    owner = manifest["metadata"]["ownerReferences"][0]["uid"]
    return known is not None and known.controller_uid != owner


def _advance(before: Memory, seen: Seen, readings: Readings) -> Memory:
    """Memory after looking, before deciding."""
    spec = seen.service.spec
    wanted = seen.deployment.replicas if before.last_desired is None else before.last_desired
    entered = memory.entered(before, spec.scaling.mode, spec.replicas, wanted)
    read = memory.read(entered, demand_known=readings.demand.reading is not None, ticked_at=readings.ticked_at)
    held = memory.unseen(read, seen.deployment.replicas, seen.now)
    return replace(held, cold_starts=coldstart.observe(held.cold_starts, seen.pods))


def _decided(seen: Seen, before: Memory, readings: Readings, problem: Problem | None) -> Facts:
    """Decide, and remember it."""
    current = _advance(before, seen, readings)
    decision = decide(observation.observation(seen, current), seen.now)
    remembered = memory.decided(current, decision, seen.now)
    return Facts(service=seen.service, memory=remembered, problem=problem, seen=seen, decision=decision)


def _show(key: ServiceKey, facts: Facts) -> None:
    """Metrics of a decision."""
    if facts.service is None or facts.seen is None or facts.decision is None or facts.counts is None:
        return
    metrics.show_decision(key, facts.decision, facts.counts)
    forecast = observation.forecast(facts.service, facts.seen.forecast)
    metrics.show_forecast(key, forecast.state if forecast else None, forecast.upper if forecast else None)
