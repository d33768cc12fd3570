"""What the API server and the operator's metrics say, as values. Pure."""

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

Json = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class PodTimes:
    """When a pod was made and when it turned warm (unix seconds). `warm_at` None: not within the demo."""

    name: str
    created_at: float
    warm_at: float | None

    @property
    def start_up_seconds(self) -> float | None:
        """From its making to warm."""
        return None if self.warm_at is None else self.warm_at - self.created_at


@dataclass(frozen=True, kw_only=True)
class OperatorNumbers:
    """The operator's gauges of one service, in replicas or replica-equivalents. None: not exported, or unknown."""

    demand: float | None = None
    forecast_upper: float | None = None
    reactive: float | None = None
    predictive: float | None = None
    without_forecast: float | None = None
    binding: str = ""


def operator_numbers(text: str, *, namespace: str, name: str) -> OperatorNumbers:
    """Read one service's gauges from the operator's `/metrics` text."""
    gauges = dict(_gauges(text, {"namespace": namespace, "name": name}))
    bindings = [key[1] for key, value in gauges.items() if key[0] == "warmfront_binding" and value == 1]
    return OperatorNumbers(
        demand=gauges.get(("warmfront_demand_replicas", "")),
        forecast_upper=gauges.get(("warmfront_forecast_upper_replicas", "")),
        reactive=gauges.get(("warmfront_candidate_replicas", "Reactive")),
        predictive=gauges.get(("warmfront_candidate_replicas", "Predictive")),
        without_forecast=gauges.get(("warmfront_desired_replicas_without_forecast", "")),
        binding=bindings[0] if bindings else "",
    )


def ticks_done(text: str) -> float:
    """Read how many passes the operator has made; 0 where it says nothing."""
    return dict(_gauges(text, {})).get(("warmfront_tick_seconds_count", ""), 0.0)


def pod_times(pods: Json) -> list[PodTimes]:
    """Read when each pod of a list was made, and when it turned Ready (warm, in Warmfront's gateway)."""
    return [
        PodTimes(
            name=pod["metadata"]["name"],
            created_at=unix(pod["metadata"]["creationTimestamp"]),
            warm_at=_warm_at(pod),
        )
        for pod in pods["items"]
    ]


def starting_count(pods: Json) -> int:
    """Count the pods that are not warm yet and are not going away."""
    return sum(_warm_at(pod) is None and "deletionTimestamp" not in pod["metadata"] for pod in pods["items"])


def warm_count(pods: Json) -> int:
    """Count the warm pods that are not going away."""
    return sum(_warm_at(pod) is not None and "deletionTimestamp" not in pod["metadata"] for pod in pods["items"])


def condition(resource: Json, kind: str) -> Json:
    """Return one condition of a resource's status; without it, one of status Unknown."""
    conditions = resource.get("status", {}).get("conditions", [])
    absent: Json = {"type": kind, "status": "Unknown", "reason": "", "message": ""}
    return next((found for found in conditions if found["type"] == kind), absent)


def forecast_trusted(resource: Json) -> bool:
    """Say whether the forecast behind the last decision is trusted, by the state and by the condition alike."""
    forecast = resource.get("status", {}).get("forecast") or {}
    return forecast.get("state") == "Trusted" and condition(resource, "ForecastTrusted")["status"] == "True"


def new_decisions(resource: Json, *, since: float, known: Collection[str]) -> list[dict[str, Any]]:
    """Return the decisions made since a time (unix seconds) whose times are not known yet, oldest first."""
    listed = reversed(resource.get("status", {}).get("decisions", []))
    return [found for found in listed if unix(found["time"]) >= since and found["time"] not in known]


def unix(timestamp: str) -> float:
    """Return a Kubernetes timestamp as unix seconds."""
    return datetime.fromisoformat(timestamp).timestamp()


def _warm_at(pod: Json) -> float | None:
    ready = condition(pod, "Ready")
    return unix(ready["lastTransitionTime"]) if ready["status"] == "True" else None


def _gauges(text: str, wanted: Mapping[str, str]) -> Iterator[tuple[tuple[str, str], float]]:
    """Yield ((metric, its one more label's value or ""), value) of the series that carry the wanted labels."""
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if wanted.items() <= sample.labels.items() and not math.isnan(sample.value):
                more = [value for label, value in sample.labels.items() if label not in wanted]
                yield (sample.name, more[0] if more else ""), sample.value
