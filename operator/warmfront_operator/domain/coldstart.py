"""Start-up times: from the creation of a pod to its being warm, per rendering of the pod template.

After a restart of the operator they are taken from the pods that are there; of pods that are gone only the percentiles in
status are left, which stand in as samples until new ones are measured.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from warmfront_api.status import ColdStartStatus
from warmfront_operator.domain.resources import Pod

MAX_SAMPLES: Final = 50  # older start-ups tell of older images and nodes


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One start-up. `template_hash` None: unknown, from status."""

    pod_uid: str
    template_hash: str | None
    seconds: float


@dataclass(frozen=True, kw_only=True)
class ColdStarts:
    """Samples, oldest first. A pod is measured once: when it turns ready again later, that is no start-up."""

    samples: tuple[Sample, ...] = ()
    measured: frozenset[str] = field(default_factory=frozenset)


def restored(status: ColdStartStatus | None) -> ColdStarts:
    """What status still tells of pods that are gone."""
    if status is None:
        return ColdStarts()
    seconds = (status.p50_seconds, status.p90_seconds)
    return ColdStarts(samples=tuple(Sample(pod_uid="", template_hash=None, seconds=float(value)) for value in seconds))


def observe(known: ColdStarts, pods: Iterable[Pod]) -> ColdStarts:
    """Add the pods that turned warm since."""
    pods = tuple(pods)
    ready = sorted((pod for pod in pods if pod.ready_since), key=lambda pod: (pod.ready_since, pod.uid))
    fresh = [sample for pod in ready if pod.uid not in known.measured and (sample := _sample(pod))]
    # Only pods that still exist can be seen again.
    measured = (known.measured & {pod.uid for pod in pods}) | {pod.uid for pod in ready}
    return ColdStarts(samples=(*known.samples, *fresh)[-MAX_SAMPLES:], measured=frozenset(measured))


def _sample(pod: Pod) -> Sample | None:
    """None for a pod whose first readiness can no longer be told: a container of it has been restarted."""
    if pod.ready_since is None or pod.restarts:
        return None
    seconds = max(0.0, (pod.ready_since - pod.created).total_seconds())
    return Sample(pod_uid=pod.uid, template_hash=pod.template_hash, seconds=seconds)


def seconds(known: ColdStarts, template_hash: str | None, pods: Iterable[Pod], now: datetime) -> tuple[float, ...]:
    """Samples for the decision: of the current template, of earlier ones while it has none.

    A pod that has been starting for longer than any sample is counted with its age so far. It is censored, not dropped:
    it proves that a start-up may take at least that long. One without a node says nothing of start-up.
    """
    measured = _of_template(known, template_hash)
    longest = max(measured, default=math.inf)
    late = (
        (now - pod.created).total_seconds()
        for pod in pods
        if pod.live and not pod.ready and not pod.unschedulable and pod.uid not in known.measured
    )
    return (*measured, *(age for age in late if age > longest))


def _of_template(known: ColdStarts, template_hash: str | None) -> tuple[float, ...]:
    of_it = tuple(sample.seconds for sample in known.samples if sample.template_hash == template_hash)
    return of_it or tuple(sample.seconds for sample in known.samples)


def summary(known: ColdStarts, template_hash: str | None) -> ColdStartStatus | None:
    """Figures for status; None while nothing is measured."""
    measured = sorted(_of_template(known, template_hash))
    if not measured:
        return None
    return ColdStartStatus(
        p50_seconds=round(_percentile(measured, 50)),
        p90_seconds=round(_percentile(measured, 90)),
        samples=len(measured),
    )


def _percentile(ordered: list[float], percent: int) -> float:
    """Nearest rank, as the decision's lead time uses it."""
    return ordered[max(1, math.ceil(percent * len(ordered) / 100)) - 1]
