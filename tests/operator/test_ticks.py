"""The tick loop and the handlers that feed it."""

import ast
import asyncio
import inspect
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import kopf
import pytest

from warmfront_api import names
from warmfront_forecaster.contract import ServiceQuery
from warmfront_forecaster.planning.types import DemandReading
from warmfront_operator import handlers, metrics
from warmfront_operator.domain.resources import ChildKind, ServiceKey
from warmfront_operator.domain.template import GatewayImage
from warmfront_operator.handlers import Wiring
from warmfront_operator.kube.client import Kube
from warmfront_operator.kube.events import Recorder
from warmfront_operator.kube.forecasts import Forecasts
from warmfront_operator.kube.prometheus import DemandReadings
from warmfront_operator.reconcile import Reconciler
from warmfront_operator.tick import Ticker

Make = Callable[..., Any]
KEY = ServiceKey("ml", "chat")


class Sources:
    """Prometheus and the forecaster, counting how often they are asked."""

    def __init__(self) -> None:
        self.readings, self.asked = 0, list[list[ServiceQuery]]()

    async def read(self) -> DemandReadings:
        self.readings += 1
        reading = DemandReading(arrivals_per_second=1.0, prompt_tokens=1000.0, output_tokens=200.0)
        return DemandReadings(by_service={KEY: reading})

    async def ask(self, queries: Any, _now: datetime) -> Forecasts:
        self.asked.append(list(queries))
        return Forecasts()


@pytest.fixture
def sources() -> Sources:
    return Sources()


@pytest.fixture
def make_ticker(kube: Kube, api: Any, sources: Sources, now: datetime) -> Callable[..., Ticker]:
    def build(*, tick_seconds: float = 1000.0, clock: Callable[[], datetime] = lambda: now) -> Ticker:
        observed = api.observed()
        gateway = GatewayImage(image="gw:1", pull_policy="IfNotPresent")
        reconciler = Reconciler(kube=kube, observed=observed, recorder=Recorder(kube), gateway=gateway, tick_seconds=tick_seconds)
        sourced: Any = sources
        return Ticker(
            reconciler=reconciler,
            observed=observed,
            demand=sourced,
            forecasts=sourced,
            namespaces=(),
            tick_seconds=tick_seconds,
            concurrency=4,
            clock=clock,
        )

    return build


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not holds():  # noqa: ASYNC110 - what is waited for is an effect on the API server
            await asyncio.sleep(0.005)


async def test_one_tick_asks_prometheus_and_the_forecaster_once_for_all_services(
    make_ticker: Make, api: Any, sources: Sources, raw_service: Make
) -> None:
    for number in range(20):
        api.put(
            raw_service(name=f"chat-{number}", uid=f"uid-{number}", scaling__predictive={"mode": "Off" if number else "Shadow"})
        )
    await make_ticker().tick()
    assert sources.readings == 1
    assert [[query.name for query in asked] for asked in sources.asked] == [["chat-0"]]
    assert len([key for key in api.objects if key[0] == "Deployment"]) == 20


async def test_the_forecaster_is_told_what_the_decision_will_take(
    make_ticker: Make, api: Any, sources: Sources, raw_service: Make
) -> None:
    predictive = {
        "quantilePercent": 90,
        "historyDays": 7,
        "timezone": "Europe/Berlin",
        "leadTime": {"source": "Fixed", "seconds": 77},
    }
    api.put(raw_service(scaling__predictive=predictive))
    await make_ticker(tick_seconds=15.0).tick()
    ((query,),) = sources.asked
    assert (query.lead_time_seconds, query.tick_seconds, query.quantile_percent) == (77.0, 15.0, 90)
    assert (query.history_days, query.timezone, query.capacity.target_utilization) == (7, "Europe/Berlin", 0.5)


async def test_nothing_happens_before_the_watches_have_brought_everything(make_ticker: Make, api: Any, raw_service: Make) -> None:
    api.put(raw_service())
    ticker = make_ticker(tick_seconds=0.01)
    running = asyncio.create_task(ticker.run())
    await asyncio.sleep(0.1)
    assert api.writes == []
    ticker.wake(KEY)
    await until(lambda: ("Deployment", "ml", "chat") in api.objects)
    ticker.stop()
    await running


async def test_a_new_spec_is_looked_at_at_once_and_alone(
    make_ticker: Make, api: Any, sources: Sources, raw_service: Make
) -> None:
    api.put(raw_service())
    ticker = make_ticker()
    running = asyncio.create_task(ticker.run())
    ticker.wake(KEY)
    await until(lambda: sources.readings == 1 and "status" in [write[1].split("/")[-1] for write in api.writes])
    api.put(raw_service(name="other", uid="uid-other"))
    ticker.observed.indices = api.observed().indices
    ticker.wake(ServiceKey("ml", "other"))
    await until(lambda: ("Deployment", "ml", "other") in api.objects)
    assert sources.readings == 1
    ticker.stop()
    await running


async def test_stopping_lets_the_pass_that_runs_come_to_its_end(make_ticker: Make, api: Any, raw_service: Make) -> None:
    api.put(raw_service())
    ticker = make_ticker()
    running = asyncio.create_task(ticker.run())
    ticker.wake(KEY)
    await until(lambda: bool(api.writes))
    ticker.stop()
    await asyncio.wait_for(running, 5)
    assert api.get(names.KIND)["status"]["observedGeneration"] == 1


async def test_a_bug_in_one_service_does_not_stop_the_others(
    make_ticker: Make, api: Any, raw_service: Make, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    api.put(raw_service(name="bad", uid="uid-bad"))
    api.put(raw_service())
    ticker = make_ticker()
    reconcile = ticker.reconciler.reconcile

    async def broken(raw: Any, *rest: Any) -> None:
        if raw["metadata"]["name"] == "bad":
            raise ZeroDivisionError
        await reconcile(raw, *rest)

    monkeypatch.setattr(ticker.reconciler, "reconcile", broken)
    before = metrics.RECONCILE_ERRORS.labels("bug")._value.get()
    await ticker.tick()
    assert ("Deployment", "ml", "chat") in api.objects
    assert metrics.RECONCILE_ERRORS.labels("bug")._value.get() == before + 1
    assert "ml/bad" in caplog.text


async def test_the_series_of_a_deleted_service_go_with_it(make_ticker: Make, api: Any, raw_service: Make) -> None:
    def names_shown() -> set[str]:
        return {sample.labels["name"] for family in metrics.DESIRED.collect() for sample in family.samples}

    api.put(raw_service(name="brief", uid="uid-brief"))
    ticker = make_ticker()
    await ticker.tick()
    assert "brief" in names_shown()
    for kind in (names.KIND, *map(str, ChildKind)):
        del api.objects[kind, "ml", "brief"]
    ticker.observed.indices = api.observed().indices
    await ticker.tick()
    assert "brief" not in names_shown()


async def test_lists_are_compared_every_five_minutes(make_ticker: Make, api: Any, raw_service: Make, now: datetime) -> None:
    time = now
    api.put(raw_service())
    ticker = make_ticker(clock=lambda: time)
    await ticker.tick()
    raw = api.objects.pop((names.KIND, "ml", "chat"))  # no watch tells
    ticker.observed.indices.services[KEY] = [raw]
    time += timedelta(minutes=4)
    await ticker.tick()  # the status that cannot be written is the first to notice
    time += timedelta(minutes=2)
    await ticker.tick()
    assert ticker.observed.keys() == []


# handlers


class Woken:
    def __init__(self) -> None:
        self.keys: list[ServiceKey] = []
        self.verifications = 0

    def verify_soon(self) -> None:
        self.verifications += 1

    def wake(self, key: ServiceKey) -> None:
        self.keys.append(key)


def test_only_a_new_generation_wakes() -> None:
    woken: Any = Woken()
    wiring = Wiring(ticker=woken)
    for uid, generation in (("a", 1), ("a", 1), ("a", 2), ("b", 1), ("a", 2)):
        wiring.noticed(uid, ServiceKey("ml", uid), generation)
    assert [key.name for key in woken.keys] == ["a", "a", "b"]


async def test_what_a_list_has_brought_asks_for_a_comparison_and_a_watch_does_not() -> None:
    woken: Any = Woken()
    meta: Any = {"uid": "a", "namespace": "ml", "name": "a", "generation": 1}
    wiring = Wiring(ticker=woken)
    for kind in ("ADDED", "MODIFIED", "DELETED"):
        await handlers.service_changed(memo=wiring, type=kind, meta=meta)
        await handlers.pod_listed(memo=wiring, type=kind)
    assert woken.verifications == 0
    await handlers.service_changed(memo=wiring, type=None, meta=meta)
    await handlers.pod_listed(memo=wiring, type=None)
    assert woken.verifications == 2
    assert [key.name for key in woken.keys] == ["a", "a"]  # deleted, it is unknown again


def test_kopf_leaves_no_trace_in_the_cluster() -> None:
    found = handlers.settings()
    assert found.posting.enabled is False
    assert found.peering.standalone is True
    assert found.scanning.disabled is True
    registry = handlers.REGISTRY
    assert registry._changing.get_all_handlers() == []
    assert registry._spawning.get_all_handlers() == []


def test_only_our_children_are_watched() -> None:
    selectors = handlers.settings().watching.label_selectors
    for group, version, plural in handlers.WATCHED:
        resource = kopf.Resource(group=group, version=version, plural=plural)
        assert selectors.collect(resource) == [names.LABEL_SERVICE]
    assert selectors.collect(kopf.Resource(group=names.GROUP, version=names.VERSION, plural=names.PLURAL)) == []


def test_handlers_only_pass_on() -> None:
    tree = ast.parse(Path(inspect.getfile(handlers)).read_text())
    decorated = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.decorator_list]
    assert len(decorated) >= 10
    for node in decorated:
        assert node.end_lineno is not None
        assert node.end_lineno - node.lineno < 15, f"{node.name} does too much"


async def test_the_log_tells_what_changes_and_not_each_tick(
    make_ticker: Make, api: Any, raw_service: Make, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="warmfront_operator.tick")
    ticker = make_ticker()
    ticker.demand = answers = Demands()
    for error, named in [("", "chat"), ("no answer", "chat"), ("no answer", "other"), ("", "other")]:
        answers.error = error
        api.objects = {}
        api.put(raw_service(name=named, uid=f"uid-{named}"))
        ticker.observed.indices = api.observed().indices
        await ticker.tick()
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("INFO", "the watches are complete: watching 1 services"),
        ("WARNING", "demand cannot be read: no answer"),
        ("INFO", "ml/other: new service"),
        ("INFO", "ml/chat: the service is gone"),
        ("INFO", "demand can be read again"),
    ]


class Demands:
    """Prometheus that fails on demand."""

    error = ""

    async def read(self) -> DemandReadings:
        return DemandReadings(error=self.error)
