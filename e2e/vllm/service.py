"""Real vLLM as an InferenceService of the test cluster: one start for all the tests that need it.

vLLM as an image is over six gigabytes; its virtual environment and the model are mounted from the node instead, into the
simulator's image, which has the same Python and nothing else that matters here.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from e2e.demo.rehearsal import TICK_SECONDS, rehearsal
from e2e.support import kube, prometheus
from e2e.support.install import install_warmfront
from e2e.support.readings import condition
from e2e.support.service import Watched
from e2e.vllm.environment import default_environment
from e2e.vllm.launch import VARIABLES
from e2e.vllm.passage import passage
from warmfront_api.names import CONTAINER_ENGINE, LABEL_SERVICE, PORT_ENGINE

NAMESPACE: Final = "vllm"
MODEL: Final = "smollm2"
SERVICE: Final = Watched(namespace=NAMESPACE, name=MODEL)
ENVIRONMENT_MOUNT: Final = "/opt/vllm"
MODEL_MOUNT: Final = "/models/smollm2"
READY_SECONDS: Final = 300.0

# The image's user has no entry in /etc/passwd and no home: what vLLM and torch would look up there is said instead. It has no
# C++ compiler either, which torch would look for at the first request for log probabilities, and end the engine.
OF_THE_IMAGE: Final = {
    "HOME": "/tmp",  # noqa: S108
    "LOGNAME": "vllm",
    "VLLM_CACHE_ROOT": "/tmp/vllm",  # noqa: S108
    "TORCHINDUCTOR_CACHE_DIR": "/tmp/inductor",  # noqa: S108
    "TORCHDYNAMO_DISABLE": "1",
}


@contextmanager
def running(folder: Path) -> Iterator[Watched]:
    """Warmfront, Prometheus, and a warm service with a real engine. `folder` is for the history that Prometheus starts with.

    Raises:
        NotSetUpError: real vLLM is not there; `python -m e2e.vllm setup` makes it.
    """
    install_warmfront(tick_seconds=TICK_SECONDS)
    before = rehearsal(name=SERVICE.name, namespace=NAMESPACE, seconds_to_jump=3 * 3600.0, played_seconds=0.0)
    prometheus.start_with(before.past(now=time.time()), folder)
    kube.apply_objects({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    try:
        kube.apply_manifest(_manifest())
        ready = "a pod with real vLLM is warm"
        kube.wait_for(ready, lambda: condition(SERVICE.resource(), "Ready")["status"] == "True" or None, seconds=READY_SECONDS)
        yield SERVICE
    finally:
        kube.kubectl("delete", "namespace", NAMESPACE, "--wait=false", "--ignore-not-found")


@contextmanager
def engine_on_loopback() -> Iterator[str]:
    """The URL of the engine itself, past its gateway. Only on the machine that the pod runs on."""
    pods = kube.get("pods", f"--namespace={NAMESPACE}", f"--selector={LABEL_SERVICE}={SERVICE.name}")["items"]
    (engine,) = (each for each in pods[0]["status"]["initContainerStatuses"] if each["name"] == CONTAINER_ENGINE)
    with passage(engine["containerID"], PORT_ENGINE) as url:
        yield url


def _manifest() -> dict[str, Any]:
    environment = default_environment()
    environment.paths()  # refuses an unfinished one, with the command that makes it
    mounts = [
        {"name": "environment", "mountPath": ENVIRONMENT_MOUNT, "readOnly": True},
        {"name": "model", "mountPath": MODEL_MOUNT, "readOnly": True},
        {"name": "shm", "mountPath": "/dev/shm"},  # noqa: S108 - vLLM's workers talk through it; 64 MB are not enough
    ]
    volumes = [
        {"name": "environment", "hostPath": {"path": str(environment.venv), "type": "Directory"}},
        {"name": "model", "hostPath": {"path": str(environment.model), "type": "Directory"}},
        {"name": "shm", "emptyDir": {"medium": "Memory"}},
    ]
    engine = {
        "image": "localhost/warmfront/enginesim:dev",
        "command": [f"{ENVIRONMENT_MOUNT}/bin/python", "-m", "vllm.entrypoints.openai.api_server"],
        "args": ["--dtype=bfloat16", "--enforce-eager"],
        "env": [{"name": name, "value": value} for name, value in {**VARIABLES, **OF_THE_IMAGE}.items()],
        "maxModelLen": 2048,
        "maxNumSeqs": 16,
        "resources": {"limits": {"memory": "6Gi"}},
        "volumeMounts": mounts,
    }
    spec = {
        "model": {"name": MODEL, "source": f"path://{MODEL_MOUNT}"},
        "engine": engine,
        "scaling": {"maxReplicas": 1, "capacity": {"prefillTokensPerSecond": 500, "decodeTokensPerSecond": 160}},
        "podTemplate": {"spec": {"volumes": volumes}},
    }
    metadata = {"name": SERVICE.name, "namespace": NAMESPACE}
    return {"apiVersion": "warmfront.dev/v1alpha1", "kind": "InferenceService", "metadata": metadata, "spec": spec}
