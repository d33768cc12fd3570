"""Nodes: a containerd and a kubelet each, with pretended GPUs and the images imported."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from e2e.localcluster import configs
from e2e.localcluster.api import Api
from e2e.localcluster.commands import run
from e2e.localcluster.console import step
from e2e.localcluster.errors import ClusterBrokenError
from e2e.localcluster.layout import ClusterPaths

PAUSE_IMAGE = "localhost/pause:1"
GPU = "nvidia.com/gpu"


@dataclass(frozen=True, kw_only=True)
class Archive:
    """An image in a file: the reference that pods name, the file, and the key of what it was built from."""

    reference: str
    file: Path
    key: str


def write_configs(paths: ClusterPaths, index: int) -> None:
    """The folders and configuration files of one node."""
    node, network = paths.node(index), paths.node(index) / "cni"
    for folder in (network, node / "pod-logs", node / "volume-plugins", paths.node_run(index)):
        folder.mkdir(parents=True, exist_ok=True)
    socket = paths.containerd_socket(index)
    (network / "10-warmfront.conflist").write_text(configs.pod_network(node=index, addresses=node / "addresses"))
    (node / "containerd.toml").write_text(
        configs.containerd(
            data=node / "containerd", run=paths.node_run(index) / "state", socket=socket, network=network, pause_image=PAUSE_IMAGE
        )
    )
    settings = configs.kubelet(node=index, data=node, socket=socket, authority=paths.pki / "ca.crt")
    (node / "kubelet.json").write_text(settings)


def ctr(paths: ClusterPaths, index: int, *arguments: str | Path) -> str:
    """Containerd's own client, in the namespace that the kubelet uses."""
    return run(["ctr", "--address", paths.containerd_socket(index), "--namespace", "k8s.io", *arguments])


def imported(paths: ClusterPaths, index: int) -> dict[str, str]:
    """The keys of the images that a node has, by reference."""
    try:
        found: dict[str, str] = json.loads((paths.node(index) / "images.json").read_text())
    except (OSError, ValueError):
        return {}
    return found


def outdated(have: dict[str, str], archives: Iterable[Archive]) -> list[Archive]:
    """The archives whose image a node lacks or has from other sources."""
    return [archive for archive in archives if have.get(archive.reference) != archive.key]


def import_images(paths: ClusterPaths, index: int, archives: Iterable[Archive]) -> list[str]:
    """Bring a node's images up to date; returns the references that changed."""
    have = imported(paths, index)
    changed = []
    for archive in outdated(have, archives):
        with step(f"node-{index}: imported {archive.reference}"):
            ctr(paths, index, "images", "import", archive.file)
        have[archive.reference] = archive.key
        changed.append(archive.reference)
        (paths.node(index) / "images.json").write_text(json.dumps(have))
    return changed


def give_gpus(api: Api, index: int, count: int) -> None:
    """Pretend GPUs: the kubelet keeps capacity that it did not report itself, as it does for any extended resource.

    Raises:
        ClusterBrokenError: the API server refuses.
    """
    name = GPU.replace("/", "~1")
    patch = [{"op": "add", "path": f"/status/{part}/{name}", "value": str(count)} for part in ("capacity", "allocatable")]
    answer = api.request("PATCH", f"/api/v1/nodes/node-{index}/status", patch, "application/json-patch+json")
    if answer.status != 200:
        raise ClusterBrokenError(f"The API server refused the GPUs of node-{index}: {answer.body}")


def is_registered(api: Api, index: int) -> bool:
    """Whether the kubelet has made its Node and reported its capacity."""
    answer = api.get(f"/api/v1/nodes/node-{index}")
    return answer is not None and answer.status == 200 and bool(answer.body["status"].get("capacity"))


def is_ready(body: dict[str, Any], gpus: int) -> bool:
    """Whether a Node is ready for pods, with its GPUs."""
    status = body.get("status", {})
    ready = any(condition["type"] == "Ready" and condition["status"] == "True" for condition in status.get("conditions", ()))
    return ready and int(status.get("allocatable", {}).get(GPU, 0)) == gpus


def node_ready(api: Api, index: int, gpus: int) -> bool:
    """The same, asked of the API server."""
    answer = api.get(f"/api/v1/nodes/node-{index}")
    return answer is not None and answer.status == 200 and is_ready(answer.body, gpus)
