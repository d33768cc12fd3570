"""Real vLLM in a pod: apply, warm, a streamed completion through the gateway, its own metrics in Prometheus."""

import asyncio
import time
from typing import Final

import pytest

from e2e.load.player import Target, open_session, send_one
from e2e.load.records import RequestRecord
from e2e.load.schedule import PlannedRequest
from e2e.support import kube, prometheus
from e2e.vllm.service import MODEL, NAMESPACE, READY_SECONDS, SERVICE
from warmfront_forecaster.adapters.prometheus_client import PrometheusEndpoint, connect

pytestmark = [pytest.mark.vllm, pytest.mark.usefixtures("vllm_service")]

OUTPUT_TOKENS: Final = 16


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
    kube.wait_for("vLLM at rest", lambda: value("vllm:num_requests_running") == 0 or None, seconds=60)
    assert value("warmfront_gateway_warm") == 1
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
