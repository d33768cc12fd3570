"""The local cluster itself, on a second cluster beside the one that the other tests use."""

import signal
import time
from collections.abc import Iterator
from typing import Any, Final

import pytest

from e2e.localcluster.inside import existing_kubeconfig
from e2e.localcluster.namespaces import call_in_network
from e2e.localcluster.sweep import cgroup_folders
from e2e.support import machine
from e2e.support.clusters import NamedCluster

pytestmark = pytest.mark.skipif(
    existing_kubeconfig() is not None, reason="an existing cluster is used; these make and break their own"
)

SPARE: Final = NamedCluster(name="spare")
# The base image has Python in it, and this one is not built anew with every change of our code.
IMAGES: Final = "--images=prometheus"
IMAGE: Final = "localhost/warmfront/prometheus:dev"
SLOW: Final = pytest.mark.slow
PYTHON: Final = "/usr/bin/python3"


@pytest.fixture(scope="module")
def untouched() -> Iterator[dict[str, object]]:
    """The machine's network before there was a spare cluster, which is removed at the end."""
    SPARE.run("down")
    yield machine.network()
    SPARE.run("down")


@pytest.fixture
def spare(untouched: dict[str, object]) -> NamedCluster:
    """The spare cluster, running, whatever the test before did to it."""
    assert untouched
    SPARE.run("up", IMAGES)
    return SPARE


def pod(name: str, command: list[str], *, gpus: int = 0, node: str | None = None) -> dict[str, Any]:
    """A pod as strict clusters demand it: no root, nothing to write to, no privilege."""
    container = {
        "name": "main",
        "image": IMAGE,
        "imagePullPolicy": "IfNotPresent",
        "command": command,
        "resources": {"limits": {"nvidia.com/gpu": str(gpus)} if gpus else {}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    spec = {"containers": [container], "restartPolicy": "Never", "terminationGracePeriodSeconds": 0}
    spec |= {"nodeSelector": {"kubernetes.io/hostname": node}} if node else {}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"test": "cluster"}}, "spec": spec}


def phase(cluster: NamedCluster, name: str) -> str:
    return str(cluster.get("pod", name)["status"]["phase"])


def run_in_pod(cluster: NamedCluster, name: str, program: str) -> str:
    """Run a Python program in a pod to its end and return what it printed."""
    cluster.apply(pod(name, [PYTHON, "-c", program]))
    cluster.wait(f"pod {name} to end", lambda: phase(cluster, name) in ("Succeeded", "Failed"))
    said = cluster.kubectl("logs", name)
    assert phase(cluster, name) == "Succeeded", said
    return said


def test_nodes_are_ready_with_four_gpus_each(spare: NamedCluster) -> None:
    nodes = spare.get("nodes")["items"]
    assert {node["metadata"]["name"]: node["status"]["allocatable"]["nvidia.com/gpu"] for node in nodes} == {
        "node-0": "4",
        "node-1": "4",
    }


def test_a_second_up_changes_nothing(spare: NamedCluster) -> None:
    before = spare.processes()
    assert "nothing to do" in spare.run("up", IMAGES)
    assert spare.processes() == before


def test_another_shape_is_refused_while_the_cluster_runs(spare: NamedCluster) -> None:
    refused = spare.attempt("up", IMAGES, "--nodes=1")
    assert refused.returncode == 1
    assert "cluster-down" in refused.stdout
    assert spare.run("status").startswith("cluster spare: running, 2 nodes")


def test_a_fifth_pod_waits_for_a_gpu_of_a_node_with_four(spare: NamedCluster) -> None:
    names = [f"gpu-{number}" for number in range(5)]
    spare.apply(*(pod(name, ["sleep", "600"], gpus=1, node="node-0") for name in names))
    spare.wait("four running pods", lambda: sum(phase(spare, name) == "Running" for name in names) == 4)
    (waiting,) = (spare.get("pod", name) for name in names if phase(spare, name) == "Pending")
    (reason,) = (entry["message"] for entry in waiting["status"]["conditions"] if entry["type"] == "PodScheduled")
    assert "Insufficient nvidia.com/gpu" in reason
    spare.kubectl("delete", "pods", "--selector=test=cluster", "--wait=true")


ASK_THE_API = """
import json, ssl, urllib.request
folder = "/var/run/secrets/kubernetes.io/serviceaccount/"
verified = ssl.create_default_context(cafile=folder + "ca.crt")
request = urllib.request.Request(
    "https://kubernetes.default.svc/apis/authentication.k8s.io/v1/selfsubjectreviews",
    data=json.dumps({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}).encode(),
    headers={"Authorization": "Bearer " + open(folder + "token").read(), "Content-Type": "application/json"},
)
print(json.load(urllib.request.urlopen(request, context=verified, timeout=10))["status"]["userInfo"]["username"])
"""


def test_a_pod_finds_the_api_by_name_and_is_known_by_its_service_account(spare: NamedCluster) -> None:
    assert run_in_pod(spare, "asks-the-api", ASK_THE_API).strip() == "system:serviceaccount:default:default"


SERVE = "import http.server; http.server.test(http.server.SimpleHTTPRequestHandler, port=8000, bind='0.0.0.0')"
# A pod is ready a moment before each node's kube-proxy has heard of it, and until then its service refuses.
ASK_BOTH = """
import time, urllib.error, urllib.request
deadline = time.monotonic() + 30
def ask(name):
    while True:
        try:
            return urllib.request.urlopen(f"http://{name}.default.svc.cluster.local", timeout=10).status
        except urllib.error.URLError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)
print(ask("served-0"), ask("served-1"))
"""


def service(name: str) -> dict[str, Any]:
    spec = {"selector": {"serves": name}, "ports": [{"port": 80, "targetPort": 8000}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def served_pod(index: int) -> dict[str, Any]:
    made = pod(f"served-{index}", [PYTHON, "-c", SERVE], node=f"node-{index}")
    made["metadata"]["labels"]["serves"] = f"served-{index}"
    made["spec"]["containers"][0]["readinessProbe"] = {"httpGet": {"port": 8000, "path": "/"}, "periodSeconds": 1}
    return made


def test_a_pod_reaches_services_on_its_own_node_and_on_another(spare: NamedCluster) -> None:
    spare.apply(*map(served_pod, (0, 1)), *map(service, ("served-0", "served-1")))
    spare.kubectl("wait", "pod/served-0", "pod/served-1", "--for=condition=Ready", "--timeout=60s")
    assert run_in_pod(spare, "asks-services", ASK_BOTH).split() == ["200", "200"]
    spare.kubectl("delete", "pods", "--selector=test=cluster", "--wait=true")


@pytest.mark.parametrize(
    "component", ["kube-apiserver", *(pytest.param(name, marks=SLOW) for name in ("etcd", "kubelet-0", "containerd-1"))]
)
def test_up_mends_a_cluster_whose_part_was_killed_and_keeps_its_objects(spare: NamedCluster, component: str) -> None:
    name = f"kept-{component}"
    spare.kubectl("create", "configmap", name)
    before = spare.processes()
    spare.kill(component)
    spare.wait("the death to be seen", lambda: f"not running: {component}" in spare.attempt("status").stdout)
    spare.run("up", IMAGES)
    changed = {name for name, process in spare.processes().items() if before[name] != process}
    assert changed == {component}
    assert spare.get("configmap", name)["metadata"]["name"] == name
    assert run_in_pod(spare, f"after-{component}", "print('alive')") == "alive\n"


@pytest.mark.parametrize("reached", ["etcd", pytest.param("kubelet-1", marks=SLOW)])
def test_up_recovers_from_an_up_that_was_killed(untouched: dict[str, object], reached: str) -> None:
    SPARE.run("down")
    starting = SPARE.start("up", IMAGES)
    SPARE.wait(f"up to have started {reached}", lambda: reached in SPARE.processes())
    starting.send_signal(signal.SIGKILL)
    starting.wait()
    assert SPARE.attempt("status").stdout.startswith("cluster spare: starting")
    assert "removed what an earlier run left (starting)" in SPARE.run("up", IMAGES)
    assert SPARE.run("status").startswith("cluster spare: running")
    assert machine.network()["interfaces"] == untouched["interfaces"]


def test_down_removes_a_cluster_whose_records_are_lost(untouched: dict[str, object]) -> None:
    SPARE.run("up", IMAGES)
    SPARE.apply(pod("left-running", ["sleep", "600"]))
    SPARE.wait("a running pod", lambda: phase(SPARE, "left-running") == "Running")
    cgroups = cgroup_folders(SPARE.paths)
    assert cgroups
    for record in SPARE.paths.processes.glob("*.json"):
        record.unlink()
    SPARE.paths.state_file.unlink()
    SPARE.run("down")
    assert machine.traces("spare") == {"mounts": [], "folders": [], "processes": []}
    assert [cgroup for cgroup in cgroups if cgroup.exists()] == []
    assert machine.network() == untouched
    assert SPARE.attempt("status").stdout == "cluster spare: absent\n"


def interfaces_inside(cluster: NamedCluster) -> list[str]:
    return [line.split()[1].rstrip(":") for line in cluster.run("in", "--", "ip", "-oneline", "link").splitlines()]


def test_the_cluster_is_invisible_to_the_machine_and_cut_off_from_it(spare: NamedCluster, untouched: dict[str, object]) -> None:
    assert machine.network() == untouched
    # Each link inside ends in a pod, none in the machine: only loopback, the address bridge and the pods' links are there.
    assert all(name.startswith(("lo", "wfapi0", "veth")) for name in interfaces_inside(spare))
    unreachable = spare.attempt("in", "--", "ip", "route", "get", "192.0.2.77")
    assert "unreachable" in unreachable.stdout


def test_no_packet_to_a_cluster_address_passes_the_machines_network(untouched: dict[str, object]) -> None:
    assert untouched
    SPARE.run("down")
    with machine.sniffing() as sniffer:
        SPARE.run("up", IMAGES)
        SPARE.run("in", "--", "helm", "list", "--all-namespaces")
        run_in_pod(SPARE, "sniffed", ASK_THE_API)
        # A control: what does pass the machine's network is seen, loopback included.
        call_in_network(machine.own_network(), lambda: machine.touch_loopback("127.77.0.1"))
        SPARE.run("down")
        time.sleep(0.3)
    assert "127.77.0.1" in {str(address) for address in sniffer.seen}
    assert sniffer.to_cluster() == []
