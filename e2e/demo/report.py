"""The verdict in words. Pure."""

from collections.abc import Iterator

from e2e.demo.verdict import ReplicaVerdict, Verdict
from e2e.load.records import LoadSummary


def report_lines(verdict: Verdict) -> Iterator[str]:
    """Yield the verdict as lines for a terminal."""
    yield "Verdict (measured in this run)"
    yield f"  start-up of a replica, made to warm: {_seconds(verdict.start_up_seconds)} (median)"
    yield from (_replica_line(replica) for replica in verdict.replicas)
    if verdict.spare_pods:
        yield f"  {verdict.spare_pods} more warm replica(s) than the played load needed"
    yield f"  decisions made by the forecast: {verdict.predictive_decisions}"
    yield f"  requests: {verdict.total.sent} sent, {verdict.total.failed} failed"
    yield _load_line("before the jump", verdict.before)
    yield _load_line("first minute after it", verdict.first_minute)
    yield _load_line("later", verdict.later)
    yield from (f"  {count} x {error}" for error, count in verdict.errors.items())
    yield from (f"  NOT SHOWN: {problem}" for problem in verdict.problems)


def outcome_line(verdict: Verdict) -> str:
    """Return the verdict in one line, which says the same as the exit status."""
    if verdict.problems:
        return f"FAILED: {'; '.join(verdict.problems)}"
    return "passed: every replica was warm before it was needed, and no request failed"


def _replica_line(replica: ReplicaVerdict) -> str:
    return (
        f"  replica {replica.replica}: {_slack(replica.slack_seconds, absent='needed, and never warm')};"
        f" without the forecast: {_slack(replica.slack_without_forecast_seconds, absent='not decided within the demo')}"
    )


def _slack(seconds: float | None, *, absent: str) -> str:
    if seconds is None:
        return absent
    return f"{-seconds:.0f} s late" if seconds < 0 else f"warm {seconds:.0f} s before it was needed"


def _load_line(name: str, load: LoadSummary) -> str:
    if load.sent == 0:
        return f"  {name}: no requests"
    p50, p95 = _milliseconds(load.ttft_p50_seconds), _milliseconds(load.ttft_p95_seconds)
    return f"  {name}: {load.sent} requests, {load.failed} failed, TTFT p50 {p50}, p95 {p95}"


def _milliseconds(seconds: float | None) -> str:
    return "unknown" if seconds is None else f"{seconds * 1000:.0f} ms"


def _seconds(seconds: float | None) -> str:
    return "unknown" if seconds is None else f"{seconds:.0f} s"
