"""A part fails: the others go on, and a condition says why. Real cluster, every part a pod.

One story, told in order: the service grows from one replica to three while its helpers are taken away one after another.
"""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from e2e.demo.rehearsal import START_UP_SECONDS, TICK_SECONDS, quick_manifest, rehearsal
from e2e.support import kube, prometheus
from e2e.support.install import NAMESPACE as SYSTEM
from e2e.support.install import install_warmfront
from e2e.support.readings import condition
from e2e.support.service import OPERATOR_PODS, Watched, read_operator

NAMESPACE: Final = "failures"
SERVICE: Final = Watched(namespace=NAMESPACE, name="chat")

# Requests per second of 60 + 10 prompt and 80 output tokens. One replica alone can still carry the first, so that no
# backlog asks for a third while the second starts.
RATE_FOR_TWO: Final = 1.9  # 1.9 x (70 / 8,000 + 80 / 174) s = 0.89 replicas, and 0.89 / 0.75 makes two
RATE_FOR_THREE: Final = 3.9  # 1.83 replicas, and 1.83 / 0.75 makes three
MOST_REPLICAS: Final = 3
SCALE_UP_SECONDS: Final = 120.0
SETTLE_SECONDS: Final = 3 * START_UP_SECONDS


@pytest.fixture(scope="module", autouse=True)
def _service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A warm service under an operator whose forecaster and Prometheus are there; the past it learns from has no jump near."""
    scenario = rehearsal(name=SERVICE.name, namespace=NAMESPACE, seconds_to_jump=3 * 3600.0, played_seconds=0.0)
    install_warmfront(tick_seconds=TICK_SECONDS)
    prometheus.start_with(scenario.past(now=time.time()), tmp_path_factory.mktemp("failures"))
    kube.apply_objects({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    try:
        manifest = quick_manifest(name=SERVICE.name, namespace=NAMESPACE)
        manifest["spec"]["scaling"]["maxReplicas"] = MOST_REPLICAS
        kube.apply_manifest(manifest)
        _wait("the service is Ready", lambda: _condition("Ready")["status"] == "True", seconds=150)
        _wait("the forecaster answers", lambda: _condition("ForecastReady")["status"] == "True", seconds=180)
        yield
    finally:
        _set_replicas(SYSTEM, "warmfront-forecaster", 1)
        _set_replicas(prometheus.NAMESPACE, prometheus.NAME, 1)
        kube.kubectl("delete", "namespace", NAMESPACE, "--wait=false", "--ignore-not-found")


def test_without_the_forecaster_the_operator_goes_on_to_react_and_says_why_it_does_not_foresee() -> None:
    _set_replicas(SYSTEM, "warmfront-forecaster", 0)
    _wait("ForecastReady turns False", lambda: _condition("ForecastReady")["status"] == "False", seconds=90)
    told = _condition("ForecastReady")
    assert told["reason"] == "ForecasterUnavailable"
    assert told["message"]
    with _load(RATE_FOR_TWO):
        _wait("a second replica", lambda: _wanted() == 2, seconds=SCALE_UP_SECONDS)
        assert SERVICE.resource()["status"]["lastDecision"]["binding"] == "Reactive"
        _wait("both are warm", lambda: SERVICE.resource()["status"].get("readyReplicas") == 2, seconds=SCALE_UP_SECONDS)
    _set_replicas(SYSTEM, "warmfront-forecaster", 1)
    _wait("ForecastReady turns True again", lambda: _condition("ForecastReady")["status"] == "True", seconds=180)


def test_an_operator_killed_in_the_middle_of_a_scale_up_is_replaced_by_one_that_does_not_scale_twice() -> None:
    pods_before = {pod["metadata"]["uid"] for pod in SERVICE.pods()["items"]}
    with _load(RATE_FOR_THREE):
        _wait("a third replica", lambda: _wanted() == 3, seconds=SCALE_UP_SECONDS)
        killed = _operator_pods()
        kube.kubectl("delete", "pods", f"--namespace={SYSTEM}", OPERATOR_PODS, "--grace-period=0", "--force")
        seen = _wanted_for(SETTLE_SECONDS)
        _wait("three are warm", lambda: SERVICE.resource()["status"].get("readyReplicas") == 3, seconds=SCALE_UP_SECONDS)
    kube.rolled_out(SYSTEM, "warmfront-operator")
    assert not killed & _operator_pods()
    assert seen == {3}
    assert len({pod["metadata"]["uid"] for pod in SERVICE.pods()["items"]} - pods_before) == 1
    assert [decision["to"] for decision in SERVICE.resource()["status"]["decisions"]].count(3) == 1


def test_without_prometheus_replicas_are_held_even_by_an_operator_that_starts_anew() -> None:
    _set_replicas(prometheus.NAMESPACE, prometheus.NAME, 0)
    _wait("ScalingActive turns False", lambda: _condition("ScalingActive")["status"] == "False", seconds=90)
    assert _condition("ScalingActive")["reason"] == "PrometheusUnavailable"
    # An operator that took an absent answer for zero demand would fall to one replica now: it has no past to wait for.
    kube.kubectl("delete", "pods", f"--namespace={SYSTEM}", OPERATOR_PODS, "--wait=true")
    kube.rolled_out(SYSTEM, "warmfront-operator")
    assert _wanted_for(8 * TICK_SECONDS) == {3}
    assert read_operator(SERVICE).binding in {"Hold", "Fallback"}
    # Told once, in our words; an outage of hours must not fill the log with each try.
    log = kube.kubectl("logs", f"--namespace={SYSTEM}", "deployment/warmfront-operator").splitlines()
    assert ["demand cannot be read" in line for line in log if "WARNING" in line and "rometheus" in line] == [True]
    _set_replicas(prometheus.NAMESPACE, prometheus.NAME, 1)
    _wait("ScalingActive turns True again", lambda: _condition("ScalingActive")["status"] == "True", seconds=120)


def _condition(kind: str) -> Any:
    return condition(SERVICE.resource(), kind)


def _wanted() -> int:
    return int(SERVICE.deployment()["spec"]["replicas"])


def _wanted_for(seconds: float) -> set[int]:
    """Every number of replicas that the Deployment asked for within a time."""
    end, seen = time.monotonic() + seconds, set()
    while time.monotonic() < end:
        seen.add(_wanted())
        time.sleep(1)
    return seen


def _operator_pods() -> set[str]:
    return {pod["metadata"]["uid"] for pod in kube.get("pods", f"--namespace={SYSTEM}", OPERATOR_PODS)["items"]}


def _set_replicas(namespace: str, deployment: str, replicas: int) -> None:
    kube.kubectl("scale", f"deployment/{deployment}", f"--namespace={namespace}", f"--replicas={replicas}")
    kube.rolled_out(namespace, deployment)


def _wait(what: str, holds: Callable[[], bool], *, seconds: float) -> None:
    kube.wait_for(what, lambda: holds() or None, seconds=seconds)


@contextmanager
def _load(rate: float) -> Iterator[None]:
    """Load in a process of its own while the block runs; bounded by itself, whatever happens to us."""
    url = f"http://{kube.service_address(NAMESPACE, SERVICE.name)}"
    lengths = ("--prompt-tokens", "60", "--output-tokens", "80")
    command = [sys.executable, "-m", "e2e.load", "--url", url, "--model", "demo-chat", "--rate", str(rate), "--seconds", "300"]
    with subprocess.Popen(
        [*command, *lengths, "--log", f"build/failures-{rate}.jsonl"], cwd=Path(__file__).parents[1], stdout=subprocess.DEVNULL
    ) as process:
        try:
            yield
        finally:
            process.terminate()
