"""The relay and the removal of a cluster, where no cluster is."""

import os
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from e2e.localcluster import cluster, machine, relay
from e2e.localcluster.__main__ import main
from e2e.localcluster.errors import ClusterNotRunningError, LocalClusterError
from e2e.localcluster.layout import ClusterPaths
from e2e.localcluster.relay import Target
from e2e.localcluster.state import Phase


@pytest.fixture
def paths(tmp_path: Path) -> ClusterPaths:
    return ClusterPaths(name="tested", data=tmp_path / "data", run=tmp_path / "run")


TARGETS = {
    "10.247.3.4:9090": Target(port=9090, address="10.247.3.4"),
    "monitoring/prometheus:80": Target(port=80, namespace="monitoring", service="prometheus"),
}


@pytest.mark.parametrize(("text", "target"), TARGETS.items())
def test_a_relay_leads_to_an_address_or_a_service(text: str, target: Target) -> None:
    assert relay.parse_target(text) == target


@pytest.mark.parametrize("text", ["prometheus:9090", "10.247.3.4", "a/b/c:1", "a/b", "a/b:99999", "a/b:0", ""])
def test_other_targets_are_refused(text: str) -> None:
    with pytest.raises(LocalClusterError, match="NAMESPACE/SERVICE:PORT"):
        relay.parse_target(text)


def test_a_relay_needs_a_cluster(paths: ClusterPaths) -> None:
    with pytest.raises(ClusterNotRunningError, match="make cluster-up"):
        relay.run_relay(paths, 9090, "a/b:80", os.getpid())


async def test_a_relay_on_a_port_that_is_taken_asks_for_another() -> None:
    with socket.socket() as taken, ThreadPoolExecutor() as dialers:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(LocalClusterError, match="Choose another port"):
            await relay.accept(relay.Relay(dialers=dialers, address="127.0.0.1", port=1), taken.getsockname()[1])


def down_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, phase: Phase) -> list[str]:
    """Run `down` on a cluster in a phase; returns its steps: sweeping, and what was said."""
    told: list[str] = []
    monkeypatch.delenv("WARMFRONT_KUBECONFIG", raising=False)
    monkeypatch.setenv("WARMFRONT_CACHE", str(tmp_path))
    monkeypatch.setenv("WARMFRONT_CLUSTER", "tested")
    monkeypatch.setattr(machine, "require_linux_root", lambda: None)
    monkeypatch.setattr(cluster, "status", lambda _: cluster.Status(phase=phase, shape=None, dead=[]))
    monkeypatch.setattr(cluster, "down", lambda _: told.append("swept"))
    assert main(["down"]) == 0
    return told


@pytest.mark.parametrize(
    ("phase", "said"), [(Phase.ABSENT, "there is no cluster tested"), (Phase.BROKEN, "removed the cluster tested")]
)
def test_down_says_removed_only_of_what_was_there_and_sweeps_in_any_case(
    phase: Phase, said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert down_says(monkeypatch, tmp_path, phase) == ["swept"]
    assert said in capsys.readouterr().out
