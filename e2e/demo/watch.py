"""Looks at the service again and again: a snapshot each time, and a line for what changed."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

from e2e.demo.snapshot import Snapshot
from e2e.load.records import RequestRecord, summarize
from e2e.support.errors import CommandError
from e2e.support.readings import OperatorNumbers, new_decisions, starting_count, warm_count
from e2e.support.service import Watched, read_operator

RECENT_SECONDS: Final = 30.0


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
