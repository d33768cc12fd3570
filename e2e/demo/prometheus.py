"""A Prometheus in the cluster that remembers a recorded past."""

import base64
import tarfile
import time
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Final

from e2e.demo import kube
from e2e.demo.scenario import HERE, Scenario
from e2e.history.backfill import make_blocks
from e2e.history.openmetrics import render

NAMESPACE: Final = "monitoring"
NAME: Final = "prometheus"
URL: Final = f"http://{NAME}.{NAMESPACE}.svc:9090"
MANIFEST: Final = HERE / "manifests" / "prometheus.yaml"
DISCOVERY: Final = HERE / "manifests" / "discovery.py"


def start_with_history(scenario: Scenario, workspace: Path) -> float:
    """Make the scenario's past end now, start a Prometheus that holds it, and return the shift.

    The past travels as a ConfigMap (ten days are 0.4 MB), so that any cluster takes it: no shared folder is needed.
    Whatever Prometheus was there before is replaced, since a past belongs to one moment.

    Returns:
        Seconds to add to trace times to get unix seconds.
    """
    window = scenario.history_window(now=time.time())
    lines = render(scenario.trace, window, scenario.history_service(), scenario.tokens)
    blocks = make_blocks(lines, workspace / "history")
    past = {"binaryData": {"blocks.tar.gz": base64.b64encode(_packed(blocks)).decode()}}
    script = {"data": {DISCOVERY.name: DISCOVERY.read_text(encoding="utf-8")}}
    kube.apply_objects(_namespace(), _config_map("prometheus-history", past), _config_map("prometheus-discovery", script))
    kube.kubectl("delete", "deployment", NAME, f"--namespace={NAMESPACE}", "--ignore-not-found", "--cascade=foreground")
    kube.apply_file(MANIFEST)
    kube.rolled_out(NAMESPACE, NAME)
    return window.shift_seconds


def _packed(blocks: Path) -> bytes:
    buffer = BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for block in sorted(blocks.iterdir()):
            archive.add(block, arcname=block.name)
    return buffer.getvalue()


def _namespace() -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}


def _config_map(name: str, content: Mapping[str, object]) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": NAMESPACE}, **content}
