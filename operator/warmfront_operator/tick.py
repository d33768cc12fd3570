"""The central tick: all services every few seconds, one at once when its spec changes."""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from pydantic import ValidationError

from warmfront_api.inferenceservice import InferenceService
from warmfront_api.scaling import PredictiveMode
from warmfront_forecaster.contract import CapacityQuery, ServiceQuery
from warmfront_forecaster.planning import lead_time_seconds
from warmfront_operator import metrics
from warmfront_operator.domain import coldstart, observation, status
from warmfront_operator.domain.memory import Memory
from warmfront_operator.domain.parsing import parse_service
from warmfront_operator.domain.reasons import ForecastReason
from warmfront_operator.domain.resources import ChildKind, Deployment, ServiceKey
from warmfront_operator.errors import KubeError
from warmfront_operator.kube.forecasts import Forecasts, ForecastSource
from warmfront_operator.kube.observe import Observed
from warmfront_operator.kube.prometheus import DemandReadings, DemandSource
from warmfront_operator.reconcile import Readings, Reconciler

LOG = logging.getLogger(__name__)

VERIFY_EVERY: Final = timedelta(minutes=5)


def utc_now() -> datetime:
    """The time."""
    return datetime.now(UTC)


@dataclass(kw_only=True)
class Ticker:
    """Runs passes until it is stopped."""

    reconciler: Reconciler
    observed: Observed
    demand: DemandSource
    forecasts: ForecastSource
    namespaces: Collection[str]
    tick_seconds: float
    concurrency: int
    clock: Callable[[], datetime] = utc_now
    on_alive: Callable[[], None] = lambda: None
    _woken: set[ServiceKey] = field(default_factory=set)
    _wakeup: asyncio.Event = field(default_factory=asyncio.Event)
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)
    _known: dict[ServiceKey, str] = field(default_factory=dict)
    _read: tuple[DemandReadings, Forecasts, datetime] | None = None
    _verified_at: datetime | None = None
    _away: set[str] = field(default_factory=set)
    _told: set[ServiceKey] | None = None

    def wake(self, key: ServiceKey) -> None:
        """Look at one service now. The first call means that the watches have brought everything."""
        self._woken.add(key)
        self._wakeup.set()

    def stop(self) -> None:
        """End after the pass that runs."""
        self._stopping.set()
        self._wakeup.set()

    def verify_soon(self) -> None:
        """Look for objects that vanished unseen at the next tick."""
        self._verified_at = None

    async def run(self) -> None:
        """Tick until stopped. Starts with the first wake-up."""
        while not await self._wait(self.tick_seconds):
            pass
        while not self._stopping.is_set():
            due = time.monotonic() + self.tick_seconds
            await self.tick()
            while not self._stopping.is_set() and await self._wait(due - time.monotonic()):
                await self._pass(self._take_woken())

    async def tick(self) -> None:
        """Read demand and forecasts, then pass over all services."""
        start, now = time.monotonic(), self.clock()
        self._woken.clear()
        await self._verify(now)
        keys = self.observed.keys()
        self._forget_gone(keys)
        self._tell_services(keys)
        demand, forecasts = await asyncio.gather(self.demand.read(), self.forecasts.ask(self._queries(keys, now), now))
        self._tell_sources(demand, forecasts)
        self._read = (demand, forecasts, now)
        await self._pass(keys)
        metrics.SERVICES.set(len(keys))
        metrics.TICK_SECONDS.observe(time.monotonic() - start)
        metrics.LAST_TICK.set(now.timestamp())

    async def _wait(self, seconds: float) -> bool:
        """Wait for a wake-up; False when the time was up first."""
        self.on_alive()
        try:
            await asyncio.wait_for(self._wakeup.wait(), max(0.0, seconds))
        except TimeoutError:
            return False
        self._wakeup.clear()
        return True

    def _take_woken(self) -> list[ServiceKey]:
        woken, self._woken = sorted(self._woken), set()
        return woken

    async def _pass(self, keys: Iterable[ServiceKey]) -> None:
        gate = asyncio.Semaphore(self.concurrency)
        await asyncio.gather(*(self._one(key, gate) for key in keys))
        self.on_alive()

    async def _one(self, key: ServiceKey, gate: asyncio.Semaphore) -> None:
        async with gate:
            now = self.clock()
            raw = self.observed.service(key, now)
            if raw is None:
                return
            self._known[key] = str(raw["metadata"]["uid"])
            try:
                await self.reconciler.reconcile(raw, self._readings(key, now), now)
            except Exception:  # one service's bug must not stop the others
                metrics.RECONCILE_ERRORS.labels("bug").inc()
                LOG.exception("%s/%s: this pass ended with an error that Warmfront did not foresee", *key)

    def _readings(self, key: ServiceKey, now: datetime) -> Readings:
        demand, forecasts, ticked_at = self._read or (DemandReadings(), Forecasts(), now)
        return Readings(demand=demand.view(key), forecast=forecasts.view(key), ticked_at=ticked_at)

    def _forget_gone(self, keys: Iterable[ServiceKey]) -> None:
        for key in set(self._known) - set(keys):
            self.reconciler.forget(key, self._known.pop(key))

    async def _verify(self, now: datetime) -> None:
        if self._verified_at is not None and now - self._verified_at < VERIFY_EVERY:
            return
        try:
            ghosts = await self.observed.verify(self.reconciler.kube, self.namespaces)
        except KubeError as error:
            LOG.warning("the API server could not be listed; vanished objects may be counted until it can: %s", error)
            return
        self._verified_at = now
        if ghosts:
            LOG.info("%d objects were gone without notice and are no longer counted", ghosts)

    def _tell_sources(self, demand: DemandReadings, forecasts: Forecasts) -> None:
        """Log a source that went away or came back, not each tick that it is away."""
        away = forecasts.reason is ForecastReason.FORECASTER_UNAVAILABLE
        self._tell("demand", demand.error)
        self._tell("forecasts", forecasts.message if away else "")

    def _tell(self, what: str, error: str) -> None:
        if error and what not in self._away:
            LOG.warning("%s cannot be read: %s", what, error)
            self._away.add(what)
        elif not error and what in self._away:
            LOG.info("%s can be read again", what)
            self._away.discard(what)

    def _tell_services(self, keys: Collection[ServiceKey]) -> None:
        """Log how many there are at the first tick, after that which are new or gone."""
        known, self._told = self._told, set(keys)
        if known is None:
            LOG.info("the watches are complete: watching %d services", len(self._told))
            return
        for key in sorted(self._told - known):
            LOG.info("%s/%s: new service", *key)
        for key in sorted(known - self._told):
            LOG.info("%s/%s: the service is gone", *key)

    def _queries(self, keys: Iterable[ServiceKey], now: datetime) -> list[ServiceQuery]:
        found = (self._query(key, now) for key in keys)
        return [query for query in found if query]

    def _query(self, key: ServiceKey, now: datetime) -> ServiceQuery | None:
        """What to ask the forecaster about a service; None where no forecast is wanted, or can be."""
        raw = self.observed.service(key, now)
        service = _parsed(raw) if raw else None
        if raw is None or service is None or service.spec.scaling.predictive.mode is PredictiveMode.OFF:
            return None
        deployment = self.observed.child(ChildKind.DEPLOYMENT, key, now)
        known = self.reconciler.memory(raw, status.parse(raw.get("status")), now)
        return _forecast_query(service, known, self._lead_time(service, deployment, known, now), self.tick_seconds)

    def _lead_time(self, service: InferenceService, deployment: object, known: Memory, now: datetime) -> float:
        """As the decision of this tick will have it."""
        key = ServiceKey(service.namespace, service.name)
        template = deployment.template.hash if isinstance(deployment, Deployment) else None
        pods = self.observed.pods(key)
        samples = coldstart.seconds(coldstart.observe(known.cold_starts, pods), template, pods, now)
        return lead_time_seconds(observation.lead_time(service.spec.scaling.predictive.lead_time), samples)


def _parsed(raw: Mapping[str, Any]) -> InferenceService | None:
    try:
        return parse_service(raw)
    except ValidationError:
        return None


def _forecast_query(service: InferenceService, known: Memory, lead_seconds: float, tick_seconds: float) -> ServiceQuery:
    predictive, capacity = service.spec.scaling.predictive, observation.capacity(service)
    return ServiceQuery(
        namespace=service.namespace,
        name=service.name,
        capacity=CapacityQuery(
            prefill_tokens_per_second=capacity.prefill_tokens_per_second,
            decode_tokens_per_second=capacity.decode_tokens_per_second,
            target_utilization=capacity.target_utilization,
        ),
        history_days=predictive.history_days,
        quantile_percent=predictive.quantile_percent,
        timezone=predictive.timezone,
        lead_time_seconds=lead_seconds,
        tick_seconds=tick_seconds,
        replicas=known.last_desired or 0,
    )
