"""Argo CD's health script, run by a real Lua 5.1 (what Argo CD embeds)."""

from typing import Any

import pytest

from tests.charts.helm import CHARTS

lua = pytest.importorskip("lupa.lua51", reason="Lua is not installed: pip install lupa")

SCRIPT = (CHARTS / "warmfront/argocd/health.lua").read_text()
UNSEEN = "The Warmfront operator has not seen this spec yet."


def health(status: dict[str, Any] | None) -> tuple[str, str]:
    """What Argo CD shows for a resource of generation 2."""
    runtime = lua.LuaRuntime()

    def table(value: object) -> object:
        if isinstance(value, dict):
            return runtime.table_from({key: table(inner) for key, inner in value.items()})
        if isinstance(value, list):
            return runtime.table_from([table(inner) for inner in value])
        return value

    resource = {"metadata": {"generation": 2}} | ({} if status is None else {"status": status})
    runtime.globals().obj = table(resource)
    result = runtime.execute(SCRIPT)
    return result.status, result.message


def seen(generation: int, **conditions: str) -> dict[str, Any]:
    """A status that has seen a generation, with conditions by type."""
    listed = [{"type": name, "status": value, "message": f"{name} is {value}"} for name, value in conditions.items()]
    return {"observedGeneration": generation, "conditions": listed}


CASES = {
    "without a status": (None, ("Progressing", UNSEEN)),
    "before the operator": (seen(-1, Ready="Unknown"), ("Progressing", UNSEEN)),
    "ready for the spec before this one": (seen(1, Ready="True"), ("Progressing", UNSEEN)),
    "ready": (seen(2, Ready="True", Reconciling="False", Stalled="False"), ("Healthy", "Ready is True")),
    "ready while the replicas change": (
        seen(2, Ready="True", ScalingLimited="True", AbleToScale="False"),
        ("Healthy", "Ready is True"),
    ),
    "the first pod is on its way": (seen(2, Ready="False", Reconciling="True"), ("Progressing", "Reconciling is True")),
    "stalled": (seen(2, Ready="False", Reconciling="True", Stalled="True"), ("Degraded", "Stalled is True")),
    "stalled with pods of the old spec warm": (seen(2, Stalled="True", Ready="True"), ("Degraded", "Stalled is True")),
    "not ready and nothing under way": (seen(2, Ready="False", Reconciling="False"), ("Degraded", "Ready is False")),
    "seen, nothing said": (seen(2), ("Progressing", "Waiting for the Warmfront operator.")),
    "a condition without a message": (
        {"observedGeneration": 2, "conditions": [{"type": "Ready", "status": "True", "message": ""}]},
        ("Healthy", "Ready."),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_health(case: str):
    status, expected = CASES[case]
    assert health(status) == expected
