"""Real vLLM in a pod: apply, warm, a streamed completion through the gateway, its own metrics in Prometheus.

vLLM as an image is over six gigabytes; its virtual environment and the model are mounted from the node instead, into the
simulator's image, which has the same Python and nothing else that matters here.
"""

import asyncio
import time
from collections.abc import Iterator
from typing import Any, Final

import pytest

from e2e.demo import kube, prometheus
from e2e.demo.install import install_warmfront
from e2e.demo.readings import condition
from e2e.demo.rehearsal import TICK_SECONDS, rehearsal
from e2e.demo.watch import Watched
from e2e.load.player import Target, open_session, send_one
from e2e.load.records import RequestRecord
from e2e.load.schedule import PlannedRequest
from e2e.vllm.environment import default_environment
from e2e.vllm.launch import VARIABLES
from warmfront_forecaster.adapters.prometheus_client import PrometheusEndpoint, connect

pytestmark = pytest.mark.vllm

NAMESPACE: Final = "vllm"
SERVICE: Final = Watched(namespace=NAMESPACE, name="smollm2")
MODEL: Final = "smollm2"
ENVIRONMENT_MOUNT: Final = "/opt/vllm"
MODEL_MOUNT: Final = "/models/smollm2"
READY_SECONDS: Final = 300.0
OUTPUT_TOKENS: Final = 16

# The image's user has no entry in /etc/passwd and no home: what vLLM and torch would look up there is said instead.
NO_HOME: Final = {"HOME": "/tmp", "LOGNAME": "vllm", "VLLM_CACHE_ROOT": "/tmp/vllm", "TORCHINDUCTOR_CACHE_DIR": "/tmp/inductor"}  # noqa: S108


@pytest.fixture(scope="module", autouse=True)
def _service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A warm service with a real engine."""
    install_warmfront(tick_seconds=TICK_SECONDS)
    past = rehearsal(name=SERVICE.name, namespace=NAMESPACE, seconds_to_jump=3 * 3600.0, played_seconds=0.0)
    prometheus.start_with_history(past, tmp_path_factory.mktemp("vllm"))
    kube.apply_objects({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    try:
        kube.apply_manifest(_manifest())
        ready = "a pod with real vLLM is warm"
        kube.wait_for(ready, lambda: condition(SERVICE.resource(), "Ready")["status"] == "True" or None, seconds=READY_SECONDS)
        yield
    finally:
        kube.kubectl("delete", "namespace", NAMESPACE, "--wait=false", "--ignore-not-found")


def test_real_vllm_streams_a_completion_through_the_gateway() -> None:
    record = asyncio.run(_ask())
    assert (record.status, record.error) == (200, None)
    assert 1 < record.output_chunks <= OUTPUT_TOKENS
    assert record.first_token_at is not None
    assert record.first_token_at < record.ended_at


def test_vllms_own_metrics_and_the_gateways_reach_prometheus_under_the_services_labels() -> None:
    asyncio.run(_ask())
    client = connect(PrometheusEndpoint(url=f"http://{kube.service_address(prometheus.NAMESPACE, prometheus.NAME)}:9090"))

    def value(metric: str) -> float:
        labels = f'{{inferenceservice_namespace="{NAMESPACE}",inferenceservice="{SERVICE.name}",pod!~".*-before"}}'
        return sum(sample.value for sample in client.query(f"sum({metric}{labels})"))

    kube.wait_for("vLLM's token counter", lambda: value("vllm:generation_tokens_total") >= OUTPUT_TOKENS or None, seconds=60)
    kube.wait_for("the gateway's counter", lambda: value("warmfront_gateway_output_tokens_total") >= 1 or None, seconds=60)
    assert value("warmfront_gateway_warm") == 1
    assert value("vllm:num_requests_running") == 0
    assert value("vllm:cache_config_info") == 1


def test_the_start_up_of_the_real_engine_was_measured() -> None:
    cold_start = SERVICE.resource()["status"]["coldStart"]
    assert cold_start["samples"] == 1
    assert 5 < cold_start["p50Seconds"] < READY_SECONDS


async def _ask() -> RequestRecord:
    request = PlannedRequest(number=1, at_seconds=0, prompt_tokens=20, output_tokens=OUTPUT_TOKENS)
    target = Target(url=f"http://{kube.service_address(NAMESPACE, SERVICE.name)}", model=MODEL)
    async with open_session() as session:
        return await send_one(session, target, request, origin=time.time())


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
        "env": [{"name": name, "value": value} for name, value in {**VARIABLES, **NO_HOME}.items()],
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
