"""The parts of the local cluster's command that need no cluster."""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from e2e.localcluster import (
    base_image,
    components,
    configs,
    golang,
    machine,
    nodes,
    packages,
    pip_config,
    processes,
    state,
    sweep,
)
from e2e.localcluster.__main__ import main, parse
from e2e.localcluster.commands import run, without_proxies
from e2e.localcluster.digests import digest
from e2e.localcluster.errors import CommandFailedError, LocalClusterError, UnsupportedMachineError
from e2e.localcluster.inside import existing_kubeconfig
from e2e.localcluster.layout import REPOSITORY, ClusterPaths, cache, cluster_paths
from e2e.localcluster.nodes import Archive
from e2e.localcluster.pki import API_SERVER, extensions, node_identity
from e2e.localcluster.state import Phase, Shape


@pytest.fixture
def paths(tmp_path: Path) -> ClusterPaths:
    return ClusterPaths(name="tested", data=tmp_path / "data", run=tmp_path / "run")


# --- keys of cached things ---------------------------------------------------------------------------------------


def tree(root: Path) -> Path:
    (root / "code" / "inner").mkdir(parents=True)
    (root / "code" / "a.py").write_text("a = 1\n")
    (root / "code" / "inner" / "b.py").write_text("b = 2\n")
    (root / "list.txt").write_text("one\n")
    return root


SOURCES = ["code", "list.txt"]


def test_the_same_tree_elsewhere_has_the_same_key(tmp_path: Path) -> None:
    assert digest(tree(tmp_path / "one"), SOURCES) == digest(tree(tmp_path / "two"), SOURCES)


CHANGES = {
    "a file's content": lambda root: (root / "code" / "a.py").write_text("a = 2\n"),
    "a file's name": lambda root: (root / "code" / "a.py").rename(root / "code" / "c.py"),
    "a new file": lambda root: (root / "code" / "inner" / "new.py").touch(),
    "a lost file": lambda root: (root / "list.txt").unlink(),
    "a lost folder": lambda root: (root / "code").rename(root / "gone"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_key_changes_with(change: Callable[[Path], object], tmp_path: Path) -> None:
    root = tree(tmp_path)
    before = digest(root, SOURCES)
    change(root)
    assert digest(root, SOURCES) != before


def test_a_key_does_not_change_with_what_running_the_code_leaves(tmp_path: Path) -> None:
    root = tree(tmp_path)
    before = digest(root, SOURCES)
    (root / "code" / "__pycache__").mkdir()
    (root / "code" / "__pycache__" / "a.cpython-311.pyc").write_bytes(b"x")
    assert digest(root, SOURCES) == before


def test_a_key_changes_with_what_a_thing_is_built_upon(tmp_path: Path) -> None:
    root = tree(tmp_path)
    keys = {digest(root, SOURCES), digest(root, SOURCES, ["base-1"]), digest(root, SOURCES, ["base-2"])}
    assert len(keys) == 3


# --- names and places --------------------------------------------------------------------------------------------


def test_the_cluster_is_called_warmfront_and_its_namespace_too_where_nothing_is_said() -> None:
    found = cluster_paths(cache({"WARMFRONT_CACHE": "/somewhere"}), {})
    assert (found.name, found.network_namespace, found.data) == ("warmfront", "warmfront", Path("/somewhere/clusters/warmfront"))


def test_clusters_of_other_names_share_nothing() -> None:
    one, two = (cluster_paths(cache({}), {"WARMFRONT_CLUSTER": name}) for name in ("one", "two"))
    for attribute in ("data", "run", "network_namespace"):
        assert getattr(one, attribute) != getattr(two, attribute)


@pytest.mark.parametrize("name", ["Upper", "a/b", "..", "-a", "a-", "a" * 33, "a b", "a\n"])
def test_a_name_that_is_no_folder_is_refused(name: str) -> None:
    with pytest.raises(LocalClusterError, match="lower-case letters"):
        cluster_paths(cache({}), {"WARMFRONT_CLUSTER": name})


def test_a_cache_so_deep_that_sockets_do_not_fit_is_refused_with_the_mend(tmp_path: Path) -> None:
    deep = ClusterPaths(name="x", data=tmp_path / ("d" * 60) / "clusters", run=tmp_path)
    with pytest.raises(LocalClusterError, match="WARMFRONT_CACHE"):
        machine.require_short_paths(deep)
    machine.require_short_paths(ClusterPaths(name="x", data=Path("/root/.cache/warmfront/clusters/x"), run=tmp_path))


def test_an_existing_cluster_is_named_by_a_file_that_must_be_there(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    assert existing_kubeconfig({}) is None
    with pytest.raises(LocalClusterError, match="no such file"):
        existing_kubeconfig({"WARMFRONT_KUBECONFIG": str(file)})
    file.touch()
    assert existing_kubeconfig({"WARMFRONT_KUBECONFIG": str(file)}) == file


def test_with_an_existing_cluster_up_and_down_do_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "kubeconfig"
    file.touch()
    monkeypatch.setenv("WARMFRONT_KUBECONFIG", str(file))
    monkeypatch.setenv("WARMFRONT_CACHE", str(tmp_path / "cache"))
    assert (main(["up"]), main(["down"])) == (0, 0)
    said = capsys.readouterr().out
    assert "none is started" in said
    assert "left as it is" in said
    assert not (tmp_path / "cache").exists()


def test_who_is_not_root_learns_of_the_other_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(UnsupportedMachineError, match=r"needs root(.|\n)*WARMFRONT_KUBECONFIG"):
        machine.require_linux_root()


# --- the command line --------------------------------------------------------------------------------------------

COMMANDS = {
    "after two dashes": (["in", "--", "pytest", "-q", "--", "e2e"], ["pytest", "-q", "--", "e2e"]),
    "without dashes": (["in", "ls", "-l"], ["ls", "-l"]),
    "kubectl, whose options are not ours": (["kubectl", "get", "pods", "--help"], ["get", "pods", "--help"]),
    "kubectl exec, whose dashes are its own": (["kubectl", "exec", "p", "--", "ls"], ["exec", "p", "--", "ls"]),
    "kubectl after dashes": (["kubectl", "--", "get", "pods"], ["get", "pods"]),
    "helm": (["helm", "list", "-A"], ["list", "-A"]),
}


@pytest.mark.parametrize(("words", "command"), COMMANDS.values(), ids=COMMANDS)
def test_a_command_inside_is_passed_on_as_written(words: list[str], command: list[str]) -> None:
    assert parse(words).command == command


def test_options_before_the_dashes_are_ours() -> None:
    options = parse(["with", "--images", "operator,gateway", "--gpus", "2", "--", "make", "--images"])
    assert (options.images, options.gpus, options.nodes, options.command) == (
        ["operator", "gateway"],
        2,
        None,
        ["make", "--images"],
    )


RELAYS = [["relay", port, "a/b:80"] for port in ("0", "99999", "http")]


@pytest.mark.parametrize("words", [["in"], ["with", "--"], ["up", "--nodes", "0"], ["up", "--nodes", "9"], ["fly"], [], *RELAYS])
def test_what_makes_no_sense_ends_with_status_two(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(words)
    assert ended.value.code == 2
    assert "usage" in capsys.readouterr().err


def test_proxies_do_not_reach_the_inside() -> None:
    kept = without_proxies({"HTTP_PROXY": "a", "https_proxy": "b", "No_Proxy": "c", "PATH": "d"})
    assert kept == {"PATH": "d"}


def test_a_failed_program_shows_the_end_of_what_it_said() -> None:
    with pytest.raises(CommandFailedError, match=r"status 3:\n(.|\n)*the last line"):
        run(["sh", "-c", "for i in $(seq 100); do echo $i; done; echo the last line >&2; exit 3"])


def test_a_missing_program_says_what_installs_it() -> None:
    with pytest.raises(CommandFailedError, match=r"e2e\.localcluster tools"):
        run(["no-such-program-anywhere"])


# --- tools -------------------------------------------------------------------------------------------------------

VERSIONS = {"go1.26.8": (1, 26, 8), "go version go1.27 linux/amd64": (1, 27), "go 1.26.0": (1, 26, 0), "gopher": ()}


@pytest.mark.parametrize(("text", "version"), VERSIONS.items())
def test_go_versions_are_compared_as_numbers(text: str, version: tuple[int, ...]) -> None:
    assert golang.version_of(text) == version


def test_the_go_that_is_needed_is_the_modules_own() -> None:
    assert (1, 26) <= golang.needed_version() < (2,)


def test_the_stamped_versions_are_those_of_the_modules() -> None:
    modules = REPOSITORY / "e2e" / "localcluster"
    assert f"k8s.io/kubernetes {golang.KUBERNETES_VERSION}\n" in (modules / "go" / "go.mod").read_text()
    assert f"helm.sh/helm/v4 {golang.HELM_VERSION} " in (modules / "helm" / "go.mod").read_text()


def test_a_package_that_is_there_is_not_installed_again() -> None:
    assert packages.missing(set(packages.NEEDED)) == []
    assert packages.missing(set(packages.NEEDED) - {"buildah", "runc"}) == ["buildah", "runc"]


def test_other_builds_of_containerd_and_runc_will_do() -> None:
    without = set(packages.NEEDED) - {"containerd", "runc"}
    assert packages.missing(without, ["containerd", "ctr", "runc"]) == []
    assert packages.missing(without, ["containerd", "runc"]) == ["containerd"]


@pytest.fixture
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "policy-rc.d"
    monkeypatch.setattr(packages, "_POLICY", file)
    monkeypatch.setattr(packages, "_SAVED_POLICY", tmp_path / "policy-rc.d.saved")
    return file


@pytest.mark.parametrize("before", [None, "#!/bin/sh\nexit 0\n"], ids=["no policy", "the machine's own policy"])
def test_services_are_held_back_only_while_packages_are_installed(before: str | None, policy: Path) -> None:
    if before:
        policy.write_text(before)
    with packages.no_services_started():
        assert subprocess.run([policy], check=False).returncode == 101
    assert (policy.read_text() if policy.exists() else None) == before


def test_a_killed_installation_does_not_hold_services_back_for_ever(policy: Path) -> None:
    policy.write_text("the machine's own")
    held = packages.no_services_started()
    held.__enter__()  # and never left: we were killed
    assert "exit 101" in policy.read_text()
    packages.restore_policy()
    assert policy.read_text() == "the machine's own"


# --- images ------------------------------------------------------------------------------------------------------


def test_the_base_image_comes_from_the_machines_own_mirror() -> None:
    targets = [
        "http://security.example/debian-security bookworm-security main",
        "https://tools.example/apt bookworm stable",
        "http://mirror.example/debian/ bookworm main",
    ]
    assert base_image.mirror(targets) == "http://mirror.example/debian"
    assert base_image.mirror(targets[:2]) is None


def test_a_node_imports_what_is_new_or_changed() -> None:
    archives = [Archive(reference=name, file=Path(name), key="2") for name in ("same", "changed", "new")]
    assert [archive.reference for archive in nodes.outdated({"same": "2", "changed": "1"}, archives)] == ["changed", "new"]


# --- pip's settings in image builds --------------------------------------------------------------------------------


def test_variables_win_over_files_and_names_are_pips_current_ones(tmp_path: Path) -> None:
    file = tmp_path / "pip.conf"
    file.write_text("[global]\nindex-url = https://file.example/simple\ntimeout = 3\n[install]\ntrusted-host = file.example\n")
    found = pip_config.merged(
        [file], {"PIP_INDEX_URL": "https://variable.example/simple", "PIP_DEFAULT_TIMEOUT": "180", "HOME": "/x"}
    )
    assert found == {"index-url": "https://variable.example/simple", "trusted-host": "file.example", "timeout": "180"}


def test_files_that_pip_names_are_mounted_and_those_that_are_not_there_are_left_out(tmp_path: Path) -> None:
    certificate, wheels = tmp_path / "ca.pem", tmp_path / "wheels"
    certificate.touch()
    wheels.mkdir()
    variables = {"PIP_CERT": str(certificate), "PIP_FIND_LINKS": f"{wheels} /nowhere/at/all https://links.example"}
    found = pip_config.pip_config(variables, files=[])
    assert found.text == f"[global]\ncert = {certificate}\nfind-links = {wheels} https://links.example\n"
    assert found.mounts == (Path("/etc/ssl/certs"), certificate, wheels)


def test_settings_that_would_change_what_is_installed_where_stay_outside() -> None:
    assert pip_config.merged([], {"PIP_TARGET": "/x", "PIP_USER": "1", "PIP_REQUIRE_VIRTUALENV": "1"}) == {}


# --- configuration of the components -------------------------------------------------------------------------------


def test_the_kubeconfig_verifies_the_server_and_names_it_by_a_certified_address() -> None:
    parsed = json.loads(configs.kubeconfig(authority="A", certificate="C", key="K"))
    (entry,) = parsed["clusters"]
    assert entry["cluster"] == {"server": "https://10.246.0.1:6443", "certificate-authority-data": "A"}
    assert "IP:10.246.0.1" in extensions(API_SERVER)


def test_a_node_is_known_as_a_node() -> None:
    assert node_identity(1).subject == "/O=system:nodes/CN=system:node:node-1"
    assert "clientAuth" in extensions(node_identity(1))


def kubelet_settings(index: int) -> dict:
    text = configs.kubelet(node=index, data=Path("/d"), socket=Path("/s"), authority=Path("/ca"))
    return json.loads(text)


def test_kubelets_share_a_machine_without_meeting() -> None:
    ports = [kubelet_settings(index)[name] for index in range(8) for name in ("port", "healthzPort")]
    assert len(set(ports)) == 16


def test_a_kubelet_answers_nobody_whom_the_api_server_does_not_know() -> None:
    settings = kubelet_settings(0)
    assert settings["authentication"]["anonymous"] == {"enabled": False}
    assert settings["authorization"] == {"mode": "Webhook"}


def test_the_audit_log_hears_all_but_the_nodes() -> None:
    *silent, last = json.loads(configs.audit_policy())["rules"]
    assert last == {"level": "Metadata"}
    assert {rule["level"] for rule in silent} == {"None"}
    assert silent[0]["userGroups"] == ["system:nodes"]


def test_every_component_of_a_healthy_cluster_is_watched(paths: ClusterPaths) -> None:
    binary = Path("/binary")
    control = (components.etcd, components.api_server, components.controller_manager, components.scheduler, components.coredns)
    started = [make(binary, paths).name for make in (*control, components.proxy)]
    started += [components.containerd(paths, index).name for index in range(2)]
    started += [components.kubelet(binary, paths, index).name for index in range(2)]
    assert sorted([*started, "machine", "namespaces"]) == sorted(components.expected_names(2))


def node(*, ready: str = "True", gpus: str = "4") -> dict:
    return {"status": {"conditions": [{"type": "Ready", "status": ready}], "allocatable": {"nvidia.com/gpu": gpus}}}


def test_a_node_is_ready_with_its_gpus_only() -> None:
    assert nodes.is_ready(node(), 4)
    assert not nodes.is_ready(node(ready="Unknown"), 4)
    assert not nodes.is_ready(node(gpus="0"), 4)
    assert not nodes.is_ready({}, 4)
    assert nodes.is_ready(node(gpus="0"), 0)


# --- processes and states -------------------------------------------------------------------------------------------


@pytest.fixture
def sleeper(paths: ClusterPaths) -> Iterator[processes.Process]:
    started = processes.start(
        "sleeper",
        ["sleep", "60"],
        environment={**os.environ, processes.MARKER: "tested-marker"},
        log=paths.logs / "sleeper.log",
        folder=paths.processes,
    )
    yield started
    processes.send([started.pid], signal.SIGKILL)


def test_a_recorded_process_is_alive_until_it_is_killed(sleeper: processes.Process, paths: ClusterPaths) -> None:
    assert processes.recorded(paths.processes) == {"sleeper": sleeper}
    assert processes.alive(sleeper)
    processes.send([sleeper.pid], signal.SIGKILL)
    assert processes.gone([sleeper.pid], seconds=5)
    assert not processes.alive(sleeper)


def test_another_process_of_the_same_number_is_not_taken_for_ours(sleeper: processes.Process) -> None:
    earlier = processes.Process(name="x", pid=sleeper.pid, start_ticks=sleeper.start_ticks - 1, boot=sleeper.boot)
    before_restart = processes.Process(name="x", pid=sleeper.pid, start_ticks=sleeper.start_ticks, boot="another")
    assert not processes.alive(earlier)
    assert not processes.alive(before_restart)


def test_a_process_without_a_record_is_found_by_its_marker(sleeper: processes.Process) -> None:
    assert processes.marked("tested-marker") == {sleeper.pid}
    assert processes.marked("tested") == set()


def test_a_command_never_counts_itself_among_those_to_kill() -> None:
    assert {os.getpid(), os.getppid()} <= processes.ancestry()


def test_a_torn_record_counts_as_none(paths: ClusterPaths) -> None:
    paths.processes.mkdir(parents=True)
    (paths.processes / "torn.json").write_text('{"name": "torn", "pi')
    (paths.processes / "other.json").write_text('{"name": "other"}')
    assert processes.recorded(paths.processes) == {}


def test_nothing_there_is_absent(paths: ClusterPaths) -> None:
    assert state.observe(paths, []) is Phase.ABSENT


@pytest.mark.parametrize("content", ["", "{", '{"phase": "flying", "shape": {}}', '{"phase": "running"}'])
def test_a_folder_without_a_readable_state_is_broken(paths: ClusterPaths, content: str) -> None:
    paths.data.mkdir()
    paths.state_file.write_text(content)
    assert state.observe(paths, []) is Phase.BROKEN


def test_a_running_cluster_with_a_dead_part_is_broken(paths: ClusterPaths, sleeper: processes.Process) -> None:
    state.write(paths, Phase.RUNNING, Shape())
    assert state.observe(paths, ["sleeper"]) is Phase.RUNNING
    assert state.observe(paths, ["sleeper", "etcd"]) is Phase.BROKEN
    assert state.dead_components(paths, ["sleeper", "etcd"]) == ["etcd"]
    assert sleeper.name == "sleeper"


@given(phase=st.sampled_from(list(Phase)), nodes_count=st.integers(1, 8), gpus=st.integers(0, 64))
def test_a_state_is_read_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, phase: Phase, nodes_count: int, gpus: int
) -> None:
    where = tmp_path_factory.mktemp("state")
    paths = ClusterPaths(name="x", data=where, run=where)
    shape = Shape(nodes=nodes_count, gpus_per_node=gpus)
    state.write(paths, phase, shape)
    assert state.read(paths) == state.Recorded(phase=phase, shape=shape)


def test_mounts_are_undone_from_the_inside_out_and_others_are_left() -> None:
    table = "a /data/x ext4 rw 0 0\nb /data/x/y\\040z ext4 rw 0 0\nc /database ext4 rw 0 0\nd / ext4 rw 0 0\n"
    assert sweep.mounts_below(Path("/data"), table) == [Path("/data/x/y z"), Path("/data/x")]


def test_the_cgroups_of_a_clusters_containers_are_removed_and_others_are_left(tmp_path: Path) -> None:
    root, paths = tmp_path / "cgroup", ClusterPaths(name="x", data=tmp_path / "data", run=tmp_path / "run")
    (paths.run / "node-1" / "state" / "io.containerd.runtime.v2.task" / "k8s.io" / "ours").mkdir(parents=True)
    for folder in ("memory/k8s.io/ours/inner", "memory/k8s.io/anothers", "cpu/k8s.io/ours", "k8s.io/ours/inner/innermost"):
        (root / folder).mkdir(parents=True)
    assert len(sweep.cgroup_folders(paths, root)) == 3
    sweep.remove_cgroups(paths, root)
    left = [str(folder.relative_to(root)) for folder in root.rglob("*")]
    assert sorted(left) == ["cpu", "memory", "memory/k8s.io", "memory/k8s.io/anothers"]


def test_a_process_is_a_containers_by_the_overlay_that_its_root_is() -> None:
    ours = "9 8 0:5 / / rw - overlay overlay rw,lowerdir=/a,upperdir=/data/demo/node-0/containerd/7/fs,workdir=/w"
    machines = "1 0 254:0 / / rw - ext4 /dev/vda rw"
    elsewhere = "2 1 0:5 / /mnt rw - overlay overlay rw,lowerdir=/a,upperdir=/data/demo/node-0/containerd/7/fs,workdir=/w"
    assert sweep.is_root_below(Path("/data/demo"), ours)
    assert not sweep.is_root_below(Path("/data/dem"), ours)
    assert not sweep.is_root_below(Path("/data/demo"), f"{machines}\n{elsewhere}\n")
