"""What the demo measured, and what follows from it. Pure: every figure comes from its arguments."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from e2e.load.records import LoadSummary, RequestRecord, error_counts, summarize
from e2e.support.readings import PodTimes


@dataclass(frozen=True, kw_only=True)
class CountSample:
    """A number of replicas at a time (unix seconds)."""

    time: float
    replicas: float


@dataclass(frozen=True, kw_only=True)
class ReplicaVerdict:
    """One more replica: when the load needed it, when it was warm, and when it would have been without the forecast.

    Slack in seconds: positive = warm before needed, negative = late, None = not within the demo.
    """

    replica: int
    needed_at: float
    warm_at: float | None
    slack_seconds: float | None
    slack_without_forecast_seconds: float | None


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """All figures of one run."""

    jump_at: float
    start_up_seconds: float | None  # median, measured
    replicas: list[ReplicaVerdict]
    spare_pods: int  # warm, but the played load never needed them
    before: LoadSummary
    first_minute: LoadSummary
    later: LoadSummary
    total: LoadSummary
    errors: dict[str, int]
    predictive_decisions: int
    problems: list[str]


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What was recorded during a run.

    `needed` gives, for each replica above those at rest, when the played load first needed it. `without_forecast`
    is what the operator's own decision would have been with the forecast off, as it recorded it.
    """

    jump_at: float
    needed: dict[int, float]
    pods: Sequence[PodTimes]
    without_forecast: Sequence[CountSample]
    records: Sequence[RequestRecord]
    predictive_decisions: int


def judge(evidence: Evidence) -> Verdict:
    """Return the verdict on a run."""
    start_up = _median_start_up(evidence.pods)
    replicas = [_judge_replica(evidence, replica, at, start_up) for replica, at in sorted(evidence.needed.items())]
    jump = evidence.jump_at
    total = summarize(evidence.records)
    return Verdict(
        jump_at=jump,
        start_up_seconds=start_up,
        replicas=replicas,
        spare_pods=max(0, len(_warm_times(evidence.pods)) - max(evidence.needed, default=1)),
        before=summarize(record for record in evidence.records if record.sent_at < jump),
        first_minute=summarize(record for record in evidence.records if jump <= record.sent_at < jump + 60),
        later=summarize(record for record in evidence.records if record.sent_at >= jump + 60),
        total=total,
        errors=error_counts(evidence.records),
        predictive_decisions=evidence.predictive_decisions,
        problems=list(_problems(evidence, total, replicas)),
    )


def _judge_replica(evidence: Evidence, replica: int, needed_at: float, start_up: float | None) -> ReplicaVerdict:
    warm = _warm_times(evidence.pods)
    warm_at = warm[replica - 1] if len(warm) >= replica else None
    decided_at = next((sample.time for sample in evidence.without_forecast if sample.replicas >= replica), None)
    without = None if decided_at is None or start_up is None else needed_at - (decided_at + start_up)
    return ReplicaVerdict(
        replica=replica,
        needed_at=needed_at,
        warm_at=warm_at,
        slack_seconds=None if warm_at is None else needed_at - warm_at,
        slack_without_forecast_seconds=without,
    )


def _problems(evidence: Evidence, total: LoadSummary, replicas: Iterable[ReplicaVerdict]) -> Iterable[str]:
    if not evidence.needed:
        yield "the played load never needed a second replica: nothing was shown"
    if total.sent == 0:
        yield "no request was sent"
    if total.failed:
        yield f"{total.failed} of {total.sent} requests failed"
    if evidence.predictive_decisions == 0:
        yield "no decision was made by the forecast"
    for replica in replicas:
        if replica.slack_seconds is None:
            yield f"replica {replica.replica} was needed and did not turn warm"
        elif replica.slack_seconds < 0:
            yield f"replica {replica.replica} was {-replica.slack_seconds:.0f} s late"


def _warm_times(pods: Iterable[PodTimes]) -> list[float]:
    return sorted(pod.warm_at for pod in pods if pod.warm_at is not None)


def _median_start_up(pods: Iterable[PodTimes]) -> float | None:
    measured = [pod.start_up_seconds for pod in pods if pod.start_up_seconds is not None]
    return statistics.median(measured) if measured else None
