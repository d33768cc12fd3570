"""The engine's metrics: names, types, labels and buckets, and that they move with the load by the right amounts."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx
import openai
import pytest

from e2e.contract.engines import Engine
from e2e.contract.readings import read, settled, wait_until

ENGINE = {"engine", "model_name"}
# What the simulator exports must be what vLLM exports: type and labels of each family.
FAMILIES: dict[str, tuple[str, set[str]]] = {
    **dict.fromkeys(("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc"), ("gauge", ENGINE)),
    "num_requests_waiting_by_reason": ("gauge", ENGINE | {"reason"}),
    **dict.fromkeys(
        (
            *("num_preemptions", "prompt_tokens", "generation_tokens"),
            *("prompt_tokens_cached", "prefix_cache_queries", "prefix_cache_hits"),
        ),
        ("counter", ENGINE),
    ),
    "prompt_tokens_by_source": ("counter", ENGINE | {"source"}),
    "request_success": ("counter", ENGINE | {"finished_reason"}),
    "admission_rejections": ("counter", {"model_name", "reason"}),
    **dict.fromkeys(
        (
            *("time_to_first_token_seconds", "inter_token_latency_seconds", "request_time_per_output_token_seconds"),
            *("e2e_request_latency_seconds", "request_queue_time_seconds", "request_inference_time_seconds"),
            *("request_prefill_time_seconds", "request_decode_time_seconds", "iteration_tokens_total"),
            *("request_prompt_tokens", "request_generation_tokens", "request_max_num_generation_tokens"),
            *("request_params_n", "request_params_max_tokens", "request_prefill_kv_computed_tokens", "request_num_preemptions"),
        ),
        ("histogram", ENGINE),
    ),
}
REQUEST_SECONDS = (0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680)
TOKEN_SECONDS = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80)
FIRST_TOKEN_SECONDS = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560),
)
TOKENS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)
BUCKETS: dict[str, tuple[float, ...]] = {
    "time_to_first_token_seconds": FIRST_TOKEN_SECONDS,
    "inter_token_latency_seconds": TOKEN_SECONDS,
    "request_time_per_output_token_seconds": TOKEN_SECONDS,
    "e2e_request_latency_seconds": REQUEST_SECONDS,
    "request_queue_time_seconds": REQUEST_SECONDS,
    "request_prompt_tokens": TOKENS,
    "request_generation_tokens": TOKENS,
    "iteration_tokens_total": (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384),
    "request_params_n": (1, 2, 5, 10, 20),
    "request_num_preemptions": (1, 2, 3, 4, 5, 10, 20),
}


@contextmanager
def stream(http: httpx.Client, engine: Engine, *, tokens: int) -> Iterator[Iterator[str]]:
    """A chat stream whose lines are read as they come; left early, it hangs up."""
    story = [{"role": "user", "content": "Tell a long story."}]
    body = {"model": engine.model, "messages": story, "max_tokens": tokens, "stream": True, "ignore_eos": True}
    with http.stream("POST", "/v1/chat/completions", json=body) as response:
        yield response.iter_lines()


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_has_vllms_type_and_labels(http: httpx.Client, name: str) -> None:
    kind, labels = FAMILIES[name]
    family = read(http).families[f"vllm:{name}"]
    assert family.type == kind
    assert family.samples
    for sample in family.samples:
        assert set(sample.labels) - {"le"} == labels


@pytest.mark.parametrize("name", BUCKETS)
def test_a_histogram_has_vllms_buckets(http: httpx.Client, name: str) -> None:
    samples = read(http).families[f"vllm:{name}"].samples
    bounds = [float(sample.labels["le"]) for sample in samples if sample.name.endswith("_bucket")]
    assert bounds == [*BUCKETS[name], float("inf")]


def test_the_cache_is_described_in_blocks(http: httpx.Client) -> None:
    (sample,) = read(http).families["vllm:cache_config_info"].samples
    blocks, size = int(sample.labels["num_gpu_blocks"]), int(sample.labels["block_size"])
    assert blocks * size == int(sample.labels["kv_cache_size_tokens"])
    assert sample.labels["engine"] == "0"
    assert sample.value == 1


def test_the_labels_name_the_served_model(http: httpx.Client, engine: Engine) -> None:
    (sample,) = read(http).families["vllm:num_requests_running"].samples
    assert sample.labels == {"engine": "0", "model_name": engine.model}


def test_a_request_moves_each_counter_by_what_it_was(http: httpx.Client, client: openai.OpenAI, engine: Engine) -> None:
    before = settled(http)
    asked: Any = {"temperature": 0, "extra_body": {"ignore_eos": True}}
    answer = client.completions.create(model=engine.model, prompt="Once upon a time", max_tokens=6, **asked)
    assert answer.usage
    after = wait_until(
        http,
        lambda now: now.value("request_success_total") == before.value("request_success_total") + 1,
        what="the finished request",
    )
    expected = {
        "prompt_tokens_total": answer.usage.prompt_tokens,
        "generation_tokens_total": 6,
        "time_to_first_token_seconds_count": 1,
        "inter_token_latency_seconds_count": 5,
        "e2e_request_latency_seconds_count": 1,
        "request_queue_time_seconds_count": 1,
        "request_generation_tokens_sum": 6,
        "request_prompt_tokens_sum": answer.usage.prompt_tokens,
        "request_params_max_tokens_sum": 6,
        "iteration_tokens_total_count": 6,
        "num_preemptions_total": 0,
    }
    assert {name: after.value(name) - before.value(name) for name in expected} == expected
    moved = after.value("request_success_total", finished_reason="length")
    assert moved == before.value("request_success_total", finished_reason="length") + 1
    assert after.value("e2e_request_latency_seconds_sum") > before.value("e2e_request_latency_seconds_sum")


def test_a_stop_is_counted_as_one(http: httpx.Client, client: openai.OpenAI, engine: Engine) -> None:
    before = settled(http).value("request_success_total", finished_reason="stop")
    asked: Any = {"temperature": 0, "extra_body": {"ignore_eos": True}}
    text = client.completions.create(model=engine.model, prompt="Once", max_tokens=12, **asked).choices[0].text
    client.completions.create(model=engine.model, prompt="Once", max_tokens=12, stop=text[5:9], **asked)
    wait_until(
        http, lambda now: now.value("request_success_total", finished_reason="stop") == before + 1, what="the stopped request"
    )


def test_a_running_stream_shows_and_holds_kv(http: httpx.Client, engine: Engine) -> None:
    settled(http)
    with stream(http, engine, tokens=1500) as lines:
        next(lines)
        reading = wait_until(http, lambda now: now.value("num_requests_running") == 1, what="one running request")
        assert 0 < reading.value("kv_cache_usage_perc") < 0.5
    settled(http)


def test_requests_beyond_the_batch_wait(http: httpx.Client, engine: Engine) -> None:
    settled(http)
    with ExitStack() as streams:
        for _ in range(engine.max_num_seqs + 3):
            streams.enter_context(stream(http, engine, tokens=1500))
        reading = wait_until(http, lambda now: now.value("num_requests_waiting") == 3, what="three waiting requests")
        assert reading.value("num_requests_running") == engine.max_num_seqs
        assert reading.value("num_requests_waiting_by_reason", reason="capacity") == 3
    settled(http)


def test_a_client_that_hangs_up_frees_the_engine(http: httpx.Client, engine: Engine) -> None:
    before = settled(http)
    with stream(http, engine, tokens=1500) as lines:
        for _ in range(8):
            next(lines)
    after = settled(http)
    assert after.value("kv_cache_usage_perc") == 0
    assert after.value("generation_tokens_total") - before.value("generation_tokens_total") < 500
    # Given up is neither finished nor counted as aborted: only what the engine ends by itself is.
    assert after.value("request_success_total") == before.value("request_success_total")


def test_a_client_that_hangs_up_on_a_whole_answer_frees_the_engine_too(http: httpx.Client, engine: Engine) -> None:
    before = settled(http)
    body = {"model": engine.model, "prompt": "Once", "max_tokens": 1500, "ignore_eos": True}
    with pytest.raises(httpx.ReadTimeout):
        http.post("/v1/completions", json=body, timeout=httpx.Timeout(10, read=1))
    after = settled(http)
    assert after.value("generation_tokens_total") - before.value("generation_tokens_total") < 500
