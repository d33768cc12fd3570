"""The end of a run: the verdict on the terminal, result.json and timeline.png beside the request log."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from e2e.demo.report import outcome_line, report_lines
from e2e.demo.scenario import Scenario
from e2e.demo.snapshot import Snapshot
from e2e.demo.timeline import draw
from e2e.demo.verdict import Evidence, judge


def finish(evidence: Evidence, snapshots: Sequence[Snapshot], scenario: Scenario, workspace: Path) -> int:
    """Judge, print and write; returns 0 when the main job was shown."""
    verdict = judge(evidence)
    print("\n" + "\n".join(report_lines(verdict)))
    result = {
        "verdict": asdict(verdict),
        "pods": [asdict(pod) for pod in evidence.pods],
        "snapshots": [asdict(snapshot) for snapshot in snapshots],
    }
    (workspace / "result.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    utilization = scenario.capacity.target_utilization
    picture = draw(snapshots, jump_at=evidence.jump_at, target_utilization=utilization, target=workspace / "timeline.png")
    print(f"  files: {picture}, {workspace / 'result.json'}, {workspace / 'requests.jsonl'}")
    print(outcome_line(verdict), flush=True)
    return int(bool(verdict.problems))
