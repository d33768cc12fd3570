"""A Prometheus in the cluster that remembers a recorded past."""

import base64
import tarfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Final

from e2e.history.backfill import make_blocks
from e2e.history.past import Past
from e2e.support import kube

NAMESPACE: Final = "monitoring"
NAME: Final = "prometheus"
URL: Final = f"http://{NAME}.{NAMESPACE}.svc:9090"
MANIFESTS: Final = Path(__file__).with_name("manifests")
DISCOVERY: Final = MANIFESTS / "discovery.py"


def start_with(past: Past, workspace: Path) -> None:
    """Start a Prometheus that holds this past; `workspace` is for its blocks.

    The past travels as a ConfigMap (ten days are 0.4 MB), so that any cluster takes it: no shared folder is needed.
    Whatever Prometheus was there before is replaced, since a past belongs to one moment.
    """
    blocks = make_blocks(past.lines(), workspace / "history")
    memory = {"binaryData": {"blocks.tar.gz": base64.b64encode(_packed(blocks)).decode()}}
    script = {"data": {DISCOVERY.name: DISCOVERY.read_text(encoding="utf-8")}}
    kube.apply_objects(_namespace(), _config_map("prometheus-history", memory), _config_map("prometheus-discovery", script))
    kube.kubectl("delete", "deployment", NAME, f"--namespace={NAMESPACE}", "--ignore-not-found", "--cascade=foreground")
    kube.apply_file(MANIFESTS / "prometheus.yaml")
    kube.rolled_out(NAMESPACE, NAME)


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
