"""Looks at the service again and again: a snapshot each time, and a line for what changed."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

from e2e.demo import kube
from e2e.demo.errors import CommandError
from e2e.demo.install import NAMESPACE as OPERATOR_NAMESPACE
from e2e.demo.readings import OperatorNumbers, new_decisions, operator_numbers, starting_count, warm_count
from e2e.demo.snapshot import Snapshot
from e2e.load.records import RequestRecord, summarize

OPERATOR_PODS: Final = "--selector=app.kubernetes.io/component=operator"
OPERATOR_METRICS_PORT: Final = 8081
RECENT_SECONDS: Final = 30.0
CHILDREN: Final = "deployments,services,configmaps,serviceaccounts,poddisruptionbudgets,pods"


@dataclass(frozen=True, kw_only=True)
class Watched:
    """The service that is looked at."""

    namespace: str
    name: str

    @property
    def pod_arguments(self) -> tuple[str, str]:
        """Arguments that list its pods."""
        return f"--namespace={self.namespace}", f"--selector=warmfront.dev/service={self.name}"

    def resource(self) -> dict[str, Any]:
        """The InferenceService."""
        return kube.get("inferenceservices.warmfront.dev", self.name, f"--namespace={self.namespace}")

    def pods(self) -> dict[str, Any]:
        """Its pods, as a list."""
        return kube.get("pods", *self.pod_arguments)

    def deployment(self) -> dict[str, Any]:
        """Its Deployment."""
        return kube.get("deployment", self.name, f"--namespace={self.namespace}")

    def left(self) -> list[str]:
        """The names of all that is there of it: the InferenceService, what the operator made for it, and the pods."""
        service = ("inferenceservices.warmfront.dev", self.name, f"--namespace={self.namespace}", "--ignore-not-found")
        found = [kube.kubectl("get", *arguments, "--output=name") for arguments in (service, (CHILDREN, *self.pod_arguments))]
        return "".join(found).split()

    def delete(self) -> None:
        """Delete the InferenceService; its children and pods follow in the background."""
        kube.kubectl(
            "delete", "inferenceservices.warmfront.dev", self.name, f"--namespace={self.namespace}", "--ignore-not-found"
        )


@dataclass(kw_only=True)
class Traffic:
    """What the load player has recorded until now."""

    records: list[RequestRecord] = field(default_factory=list)
    started: int = 0

    def count(self) -> None:
        """Count a request that goes out."""
        self.started += 1

    @property
    def in_flight(self) -> int:
        """Requests sent and not ended."""
        return self.started - len(self.records)

    def recent(self, now: float) -> list[RequestRecord]:
        """The requests that ended lately."""
        return [record for record in self.records if record.ended_at >= now - RECENT_SECONDS]


@dataclass(kw_only=True)
class Watcher:
    """Collects snapshots; `show` gets one of them every `show_seconds`, `tell` a line for every decision."""

    watched: Watched
    traffic: Traffic
    show: Callable[[Snapshot], None]
    tell: Callable[[str], None]
    since: float  # unix seconds; decisions made before belong to an earlier run
    look_seconds: float = 5.0
    show_seconds: float = 15.0
    snapshots: list[Snapshot] = field(default_factory=list)
    decisions: dict[str, dict[str, Any]] = field(default_factory=dict)

    async def until_cancelled(self) -> None:
        """Look every `look_seconds`; a look that fails for a moment is left out, and said."""
        shown_at = 0.0
        while True:
            began = time.monotonic()
            try:
                snapshot = await asyncio.to_thread(self.look)
            except (CommandError, OSError) as error:
                self.tell(f"cannot look at the cluster just now: {error}")
            else:
                self.snapshots.append(snapshot)
                if snapshot.time - shown_at >= self.show_seconds:
                    shown_at = snapshot.time
                    self.show(snapshot)
            await asyncio.sleep(max(0.0, self.look_seconds - (time.monotonic() - began)))

    def look(self) -> Snapshot:
        """Take one snapshot, and tell decisions that were not told before."""
        pods, resource, deployment = self.watched.pods(), self.watched.resource(), self.watched.deployment()
        self._tell_decisions(resource)
        numbers = read_operator(self.watched)
        now = time.time()
        return replace(
            _with_numbers(numbers, now),
            wanted=deployment["spec"].get("replicas"),
            starting=starting_count(pods),
            warm=warm_count(pods),
            in_flight=float(self.traffic.in_flight),
            ttft_p95_seconds=summarize(self.traffic.recent(now)).ttft_p95_seconds,
            sent=self.traffic.started,
            failed=sum(record.failed for record in self.traffic.records),
        )

    def _tell_decisions(self, resource: dict[str, Any]) -> None:
        for decision in new_decisions(resource, since=self.since, known=self.decisions):
            self.decisions[decision["time"]] = decision
            words = f"{decision['from']} -> {decision['to']} by {decision['binding']} ({decision['reason']})"
            self.tell(f"decision: {words}: {decision.get('message', '')}")


def read_operator(watched: Watched) -> OperatorNumbers:
    """Read the operator's gauges of a service."""
    return operator_numbers(operator_metrics(), namespace=watched.namespace, name=watched.name)


def operator_metrics() -> str:
    """Read the operator's metrics from its pod, through the API server: finer in time than Prometheus' scrapes.

    Returns:
        Their text; empty where no operator runs.
    """
    pods = kube.get("pods", f"--namespace={OPERATOR_NAMESPACE}", OPERATOR_PODS)["items"]
    running = [pod["metadata"]["name"] for pod in pods if pod["status"].get("phase") == "Running"]
    if not running:
        return ""
    path = f"/api/v1/namespaces/{OPERATOR_NAMESPACE}/pods/{running[0]}:{OPERATOR_METRICS_PORT}/proxy/metrics"
    return kube.kubectl("get", f"--raw={path}")


def _with_numbers(numbers: OperatorNumbers, now: float) -> Snapshot:
    return Snapshot(
        time=now,
        demand=numbers.demand,
        forecast_upper=numbers.forecast_upper,
        reactive=numbers.reactive,
        predictive=numbers.predictive,
        without_forecast=numbers.without_forecast,
        binding=numbers.binding,
    )
