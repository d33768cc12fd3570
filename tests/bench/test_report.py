"""What a benchmark leaves behind, and what it refuses."""

import json
from pathlib import Path

import pytest

from bench.report import Options, Report


def test_a_goal_missed_is_a_result_with_its_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = Report(name="capacity", inputs={"seed": 3})
    report.row(service="c1", missed=0.0123456)
    report.at_least("share within", 0.5, 0.9)
    report.at_most("worst ratio", 1.2, 1.25)
    written = json.loads(report.write(tmp_path).read_text())
    assert (written["name"], written["inputs"], written["table"]) == (
        "capacity",
        {"seed": 3},
        [{"service": "c1", "missed": 0.0123456}],
    )
    assert written["seconds"] >= 0
    assert written["checks"] == [
        {"name": "share within", "value": 0.5, "goal": ">= 0.9", "holds": False},
        {"name": "worst ratio", "value": 1.2, "goal": "<= 1.25", "holds": True},
    ]
    shown = capsys.readouterr().out
    assert "MISSED  share within: 0.5 (goal >= 0.9)" in shown
    assert "1 of 2 goals met" in shown


def test_options_come_from_the_environment(tmp_path: Path) -> None:
    assert Options.of({"DATA": str(tmp_path), "QUICK": "1", "SEED": "7"}) == Options(data=tmp_path, quick=True, seed=7)
    assert Options.of({"DATA": str(tmp_path), "QUICK": "0"}) == Options(data=tmp_path, quick=False, seed=1)


@pytest.mark.parametrize(
    ("environment", "said"),
    [({"DATA": "/nowhere"}, "DATA=/nowhere: no such folder"), ({"SEED": "x"}, "SEED=x: give a whole number")],
)
def test_what_cannot_be_meant_is_refused_by_name(environment: dict[str, str], said: str) -> None:
    with pytest.raises(SystemExit, match=said):
        Options.of(environment)
