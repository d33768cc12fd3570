"""The verdict follows from what was recorded, the bad cases too."""

from pathlib import Path

import pytest

from e2e.demo.report import outcome_line, report_lines
from e2e.demo.results import finish
from e2e.demo.scenario import recorded
from e2e.demo.snapshot import Snapshot, heading, row
from e2e.demo.timeline import draw
from e2e.demo.verdict import CountSample, Evidence, Verdict, judge
from e2e.load.records import RequestRecord
from e2e.support.readings import PodTimes

JUMP = 1_000_000.0


def request(at: float, *, ttft: float = 0.1, error: str | None = None) -> RequestRecord:
    sent = JUMP + at
    return RequestRecord(
        number=0,
        planned_at=sent,
        sent_at=sent,
        first_token_at=sent + ttft,
        ended_at=sent + 1,
        status=200,
        error=error,
        output_chunks=3,
    )


def pod(created: float, warm: float | None, name: str = "p") -> PodTimes:
    return PodTimes(name=name, created_at=JUMP + created, warm_at=None if warm is None else JUMP + warm)


def evidence(**changes: object) -> Evidence:
    values: dict[str, object] = {
        "jump_at": JUMP,
        "needed": {2: JUMP, 3: JUMP},
        "pods": [pod(-600, -500), pod(-240, -140), pod(-240, -130)],
        "without_forecast": [CountSample(time=JUMP - 10, replicas=1), CountSample(time=JUMP + 45, replicas=3)],
        "records": [request(5), request(30), request(90, ttft=0.3)],
        "predictive_decisions": 1,
    }
    return Evidence(**{**values, **changes})  # type: ignore[arg-type]


def verdict(**changes: object) -> Verdict:
    return judge(evidence(**changes))


def test_slack_is_from_warm_to_needed_and_the_same_decision_without_forecast_adds_a_measured_start_up() -> None:
    got = verdict()
    assert got.start_up_seconds == 100
    assert [(replica.replica, replica.slack_seconds) for replica in got.replicas] == [(2, 140), (3, 130)]
    assert [replica.slack_without_forecast_seconds for replica in got.replicas] == [-145, -145]
    assert got.problems == []


def test_without_the_forecast_it_may_have_been_in_time_too() -> None:
    got = verdict(without_forecast=[CountSample(time=JUMP - 300, replicas=3)])
    assert [replica.slack_without_forecast_seconds for replica in got.replicas] == [200, 200]
    assert "without the forecast: warm 200 s before" in "\n".join(report_lines(got))


def test_a_decision_never_made_without_the_forecast_has_no_figure() -> None:
    got = verdict(without_forecast=[])
    assert [replica.slack_without_forecast_seconds for replica in got.replicas] == [None, None]
    assert "not decided within the demo" in "\n".join(report_lines(got))


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"pods": [pod(-600, -500), pod(-80, 20), pod(-240, -130)]}, "replica 3 was 20 s late"),
        ({"pods": [pod(-600, -500), pod(-80, None), pod(-240, -130)]}, "replica 3 was needed and did not turn warm"),
        ({"records": [request(5), request(6, error="HTTP 503")]}, "1 of 2 requests failed"),
        ({"records": []}, "no request was sent"),
        ({"predictive_decisions": 0}, "no decision was made by the forecast"),
        ({"needed": {}}, "never needed a second replica"),
    ],
)
def test_what_was_not_shown_is_a_problem(changes: dict[str, object], problem: str) -> None:
    got = verdict(**changes)
    assert any(problem in found for found in got.problems)
    assert problem in "\n".join(report_lines(got))
    assert outcome_line(got).startswith("FAILED: ")
    assert problem in outcome_line(got)


@pytest.mark.parametrize(
    ("changes", "status", "last"),
    [
        ({}, 0, "passed: every replica was warm before it was needed, and no request failed"),
        ({"records": []}, 1, "FAILED: no request was sent"),
    ],
)
def test_the_last_line_says_what_the_exit_status_says(
    changes: dict[str, object], status: int, last: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert finish(evidence(**changes), [], recorded(), tmp_path) == status
    assert capsys.readouterr().out.splitlines()[-1] == last


def test_load_is_told_apart_before_the_jump_in_the_first_minute_and_later() -> None:
    got = verdict(records=[request(-5, ttft=0.2), request(0), request(59.9, ttft=0.4), request(60, ttft=0.3)])
    assert [load.sent for load in (got.before, got.first_minute, got.later, got.total)] == [1, 2, 1, 4]
    assert got.first_minute.ttft_p95_seconds == pytest.approx(0.4)
    assert got.later.ttft_p50_seconds == pytest.approx(0.3)
    assert "before the jump: no requests" in "\n".join(report_lines(verdict()))


def test_warm_pods_beyond_the_need_are_named() -> None:
    got = verdict(pods=[pod(-600, -500), *[pod(-240, -140)] * 3])
    assert got.spare_pods == 1
    assert "1 more warm replica(s)" in "\n".join(report_lines(got))


def test_a_row_has_the_columns_of_the_heading() -> None:
    line = row(Snapshot(time=JUMP - 30, demand=1.234, wanted=3, starting=2, warm=1, binding="Predictive"), jump_at=JUMP)
    assert len(line) == len(heading())
    assert "-30 s" in line
    assert "1.23" in line
    assert line.split()[-1] == "0"


def test_the_timeline_is_a_picture_even_with_unknown_values(tmp_path: Path) -> None:
    shots = [Snapshot(time=JUMP + at, demand=None if at < 0 else 1.9, warm=1, wanted=None) for at in range(-60, 61, 15)]
    path = draw(shots, jump_at=JUMP, target_utilization=0.75, target=tmp_path / "build" / "timeline.png")
    assert path.read_bytes().startswith(b"\x89PNG")
