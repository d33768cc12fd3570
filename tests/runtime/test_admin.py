"""The inner port: what Prometheus and the kubelet see."""

import asyncio

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.runtime.fakes import LABELS, OUTCOMES, Gateway, MakeGateway
from warmfront_runtime.gateway.health import Probe

COUNTERS_AND_GAUGES = {
    "warmfront_gateway_arrivals_total": [{}],
    "warmfront_gateway_requests_total": [{"outcome": outcome} for outcome in OUTCOMES],
    "warmfront_gateway_prompt_tokens_total": [{}],
    "warmfront_gateway_output_tokens_total": [{}],
    "warmfront_gateway_requests_in_flight": [{}],
    "warmfront_gateway_warm": [{}],
    "warmfront_gateway_draining": [{}],
    "warmfront_cold_start_seconds": [{"phase": "engine"}, {"phase": "warmup"}],
    "warmfront_gateway_time_to_first_token_seconds_count": [{}],
    "warmfront_gateway_inter_token_latency_seconds_count": [{}],
    "warmfront_gateway_request_duration_seconds_count": [{}],
}


async def scrape(gateway: Gateway) -> dict[tuple, float]:
    async with gateway.http.get(gateway.admin_url + "/metrics") as response:
        assert response.status == 200
        assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        text = await response.text()
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def test_every_series_is_there_at_zero_before_the_first_request(make_gateway: MakeGateway):
    gateway = await make_gateway(ready=False)
    samples = await scrape(gateway)
    for name, label_sets in COUNTERS_AND_GAUGES.items():
        for labels in label_sets:
            assert samples[name, frozenset((LABELS | labels).items())] == 0, name
    assert all(labels >= LABELS.items() for _, labels in samples), "each series carries the service's two labels"
    assert not [name for name, _ in samples if name.endswith("_created")]


async def test_the_engines_metrics_are_relayed_under_the_services_labels(gateway: Gateway):
    gateway.engine.metrics = '# TYPE vllm:num_requests_waiting gauge\nvllm:num_requests_waiting{model_name="tiny"} 4\n'
    samples = await scrape(gateway)
    assert samples["vllm:num_requests_waiting", frozenset((LABELS | {"model_name": "tiny"}).items())] == 4
    assert samples["warmfront_gateway_engine_scrape_up", frozenset(LABELS.items())] == 1


async def test_without_an_engine_the_gateways_own_series_are_served(gateway: Gateway):
    await gateway.engine_server.close()
    samples = await scrape(gateway)
    assert samples["warmfront_gateway_warm", frozenset(LABELS.items())] == 1
    assert samples["warmfront_gateway_engine_scrape_up", frozenset(LABELS.items())] == 0


async def test_an_engine_that_is_slow_to_tell_does_not_cost_the_scrape(gateway: Gateway, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("warmfront_runtime.gateway.engine.METRICS_TIMEOUT_SECONDS", 0.05)
    gateway.engine.on_metrics = asyncio.Event().wait
    assert (await scrape(gateway))["warmfront_gateway_engine_scrape_up", frozenset(LABELS.items())] == 0


async def test_an_engine_that_tells_without_end_does_not_fill_the_memory(gateway: Gateway, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("warmfront_runtime.gateway.engine.METRICS_MAX_BYTES", 1000)
    gateway.engine.metrics = "up 1\n" * 1000
    assert (await scrape(gateway))["warmfront_gateway_engine_scrape_up", frozenset(LABELS.items())] == 0


async def get(gateway: Gateway, path: str) -> int:
    async with gateway.http.get(gateway.admin_url + path) as response:
        return response.status


async def test_the_gateway_is_alive_whatever_its_engine_does(make_gateway: MakeGateway):
    gateway = await make_gateway(ready=False)
    await gateway.engine_server.close()
    assert await get(gateway, "/livez") == 200
    assert await get(gateway, "/readyz") == 503


async def test_the_engine_is_restarted_only_when_it_has_answered_and_then_hangs(make_gateway: MakeGateway):
    now = 0.0
    gateway = await make_gateway(clock=lambda: now)
    assert await get(gateway, "/engine/livez") == 200, "unknown is no reason"
    gateway.pod.watch.record(Probe.HEALTHY, now)
    gateway.pod.watch.record(Probe.UNANSWERED, now)
    now = 59.0
    assert await get(gateway, "/engine/livez") == 200
    now = 60.0
    assert await get(gateway, "/engine/livez") == 503
    gateway.pod.watch.record(Probe.UNREACHABLE, now)
    assert await get(gateway, "/engine/livez") == 200, "it restarts: loading is no hang"
