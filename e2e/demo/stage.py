"""The run inside the cluster's network: install, remember, apply, wait, play, watch."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from e2e.demo.scenario import Scenario
from e2e.demo.snapshot import Snapshot
from e2e.demo.verdict import CountSample, Evidence
from e2e.demo.watch import Traffic, Watcher
from e2e.load.log import result_log
from e2e.load.player import Target, play
from e2e.load.schedule import plan_requests
from e2e.support import kube, prometheus
from e2e.support.errors import SupportError
from e2e.support.install import install_warmfront
from e2e.support.readings import condition, forecast_trusted, pod_times
from e2e.support.service import Watched

READY_SECONDS: Final = 240.0
TRUSTED_SECONDS: Final = 300.0
GONE_SECONDS: Final = 170.0  # a pod may take 135 s to go: 5 s of routing, 120 s of drain, 10 s to exit
Tell = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Where the scenario is shown: files go to `workspace`, words to `tell`, snapshots to `show`."""

    scenario: Scenario
    workspace: Path
    tell: Tell
    show: Callable[[Snapshot, float], None]
    tick_seconds: int = 15

    @property
    def watched(self) -> Watched:
        """The service on stage."""
        return Watched(namespace=self.scenario.service.namespace, name=self.scenario.service.name)

    @contextlib.contextmanager
    def step(self, what: str) -> Iterator[None]:
        """Say what is done, and how long it took."""
        began = time.monotonic()
        self.tell(f"{what} ...")
        yield
        self.tell(f"{what}: {time.monotonic() - began:.0f} s")

    def prepare(self) -> float:
        """Bring everything up to a trusted forecast; returns the shift from trace times to unix seconds."""
        with self.step("helm install: definitions, operator, forecaster"):
            install_warmfront(tick_seconds=self.tick_seconds)
        self._clear()
        with self.step("ten days of recorded traffic into a real Prometheus"):
            past = self.scenario.past(now=time.time())
            prometheus.start_with(past, self.workspace)
        with self.step("kubectl apply of the InferenceService, until its first pod is warm"):
            kube.apply_objects(_namespace(self.watched.namespace))
            kube.apply_manifest(self.scenario.manifest)
            kube.wait_for("the service is Ready", self._is("Ready"), seconds=READY_SECONDS)
        with self.step("until the forecast is trusted"):
            kube.wait_for("the forecast is Trusted", self._trusted, seconds=TRUSTED_SECONDS)
        return past.window.shift_seconds

    def _clear(self) -> None:
        """Remove the service of an earlier run with all it left: its decisions and its warm pods would pass for new ones.

        Only the service goes, not its namespace, which in a user's own cluster may hold other things.
        """
        if not self.watched.left():
            return
        with self.step("an earlier run's service and its pods are removed"):
            self.watched.delete()
            kube.wait_for("the earlier service is gone", lambda: not self.watched.left() or None, seconds=GONE_SECONDS)

    async def perform(self, shift: float) -> tuple[Evidence, list[Snapshot]]:
        """Play the scenario from now on and return what was recorded."""
        start = time.time()
        jump_at = self.scenario.jump_seconds + shift
        traffic = Traffic()
        watcher = Watcher(
            watched=self.watched,
            traffic=traffic,
            show=lambda snapshot: self.show(snapshot, jump_at),
            tell=self.tell,
            since=self.scenario.history_end_seconds + shift,
        )
        watching = asyncio.create_task(watcher.until_cancelled())
        try:
            await self._play(traffic, start, shift)
        finally:
            watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watching
        return self._evidence(watcher, start, shift), watcher.snapshots

    async def _play(self, traffic: Traffic, start: float, shift: float) -> None:
        requests = plan_requests(self.scenario.trace, self.scenario.play(from_seconds=start - shift))
        address = kube.service_address(self.watched.namespace, self.watched.name)
        target = Target(url=f"http://{address}", model=self.scenario.service.spec.model.name)
        with result_log(self.workspace / "requests.jsonl", traffic.records.append) as record:
            await play(requests, target, record=record, started=traffic.count, start_at=start)
        await asyncio.sleep(max(0.0, self.scenario.play_end_seconds + shift - time.time()))

    def _evidence(self, watcher: Watcher, start: float, shift: float) -> Evidence:
        needed = self.scenario.needed(from_seconds=start - shift)
        return Evidence(
            jump_at=self.scenario.jump_seconds + shift,
            needed={replica: at + shift for replica, at in needed.items()},
            pods=pod_times(self.watched.pods()),
            without_forecast=list(_without_forecast(watcher.snapshots)),
            records=watcher.traffic.records,
            predictive_decisions=sum(decision["binding"] == "Predictive" for decision in watcher.decisions.values()),
        )

    def _trusted(self) -> bool | None:
        return forecast_trusted(self.watched.resource()) or None

    def _is(self, kind: str) -> Callable[[], bool | None]:
        def probe() -> bool | None:
            return True if condition(self.watched.resource(), kind)["status"] == "True" else None

        return probe


def explain_conditions(watched: Watched) -> Iterator[str]:
    """Yield the conditions of a service in words, to say why the demo cannot go on; none where it cannot be read."""
    try:
        resource = watched.resource()
    except SupportError:
        return
    for found in resource.get("status", {}).get("conditions", []):
        yield f"{found['type']}={found['status']} {found['reason']}: {found.get('message', '')}"


def _without_forecast(snapshots: list[Snapshot]) -> Iterator[CountSample]:
    for snapshot in snapshots:
        if snapshot.without_forecast is not None:
            yield CountSample(time=snapshot.time, replicas=snapshot.without_forecast)


def _namespace(name: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
