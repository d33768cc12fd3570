"""The demo in small, for the tests: a short start-up, and a jump minutes away that every day of a made-up past had too."""

import copy
from typing import Any, Final

from e2e.demo.scenario import SERVICE_FILE, Scenario, read_manifest
from e2e.history.trace import DAY_SECONDS, daily_jump

TICK_SECONDS: Final = 5
START_UP_SECONDS: Final = 20
DAYS: Final = 5
JUMP_AT: Final = 36_600.0  # of each day: 10:10
BUSY_SECONDS: Final = 4 * 3600.0
RATE: Final = 3.9  # needs three of the sample's replicas, as in the demo


def quick_manifest(*, name: str, namespace: str, predictive: str = "Active") -> dict[str, Any]:
    """Return the demo's service with a start-up of `START_UP_SECONDS`."""
    manifest = copy.deepcopy(read_manifest(SERVICE_FILE))
    manifest["metadata"] = {"name": name, "namespace": namespace}
    spec = manifest["spec"]
    unchanged = [entry for entry in spec["engine"]["env"] if not entry["name"].endswith(("LOAD_SECONDS", "COMPILE_SECONDS"))]
    unchanged = [entry for entry in unchanged if entry["name"] != "ENGINESIM_CAPTURE_SECONDS"]
    spec["engine"]["env"] = [{"name": "ENGINESIM_LOAD_SECONDS", "value": str(START_UP_SECONDS)}, *unchanged]
    spec["scaling"]["predictive"] = {"mode": predictive, "leadTime": {"seconds": 45, "marginSeconds": 15}}
    return manifest


def rehearsal(*, name: str, namespace: str, seconds_to_jump: float, played_seconds: float) -> Scenario:
    """Return a scenario whose jump comes `seconds_to_jump` after its history's end and is played for `played_seconds`."""
    jump = (DAYS - 1) * DAY_SECONDS + JUMP_AT
    return Scenario(
        manifest=quick_manifest(name=name, namespace=namespace),
        trace=daily_jump(days=DAYS, jump_seconds=JUMP_AT, busy_seconds=BUSY_SECONDS, rate=RATE),
        history_end_seconds=jump - seconds_to_jump,
        jump_seconds=jump,
        play_end_seconds=jump + played_seconds,
    )
