"""The engine's metrics under the names, labels and buckets of vLLM 0.32."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

from warmfront_forecaster.capacity.token_engine import EngineLimits, Step

LABELS: Final = ("model_name", "engine")
ENGINE: Final = "0"

_REQUEST_SECONDS = (0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680)
_TOKEN_SECONDS = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80)
_FIRST_TOKEN_SECONDS = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75),
    *(1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560),
)
_STEP_TOKENS = tuple(2.0**power for power in (0, *range(3, 15)))

_COUNTERS = {
    "num_preemptions": "Cumulative number of preemption from the engine.",
    "prompt_tokens": "Number of prefill tokens processed.",
    "generation_tokens": "Number of generation tokens processed.",
    "prompt_tokens_cached": "Number of cached prompt tokens (local + external).",
    "prefix_cache_queries": "Prefix cache queries, in terms of number of queried tokens.",
    "prefix_cache_hits": "Prefix cache hits, in terms of number of cached tokens.",
}
_GAUGES = {
    "num_requests_running": "Number of requests in model execution batches.",
    "num_requests_waiting": "Number of requests waiting to be processed.",
    "kv_cache_usage_perc": "KV-cache usage. 1 means 100 percent usage.",
}
_REQUEST_TIMES = {
    "e2e_request_latency_seconds": "Histogram of e2e request latency in seconds.",
    "request_queue_time_seconds": "Histogram of time spent in WAITING phase for request.",
    "request_inference_time_seconds": "Histogram of time spent in RUNNING phase for request.",
    "request_prefill_time_seconds": "Histogram of time spent in PREFILL phase for request.",
    "request_decode_time_seconds": "Histogram of time spent in DECODE phase for request.",
}
_REQUEST_TOKENS = {
    "request_prompt_tokens": "Number of prefill tokens processed.",
    "request_generation_tokens": "Number of generation tokens processed.",
    "request_max_num_generation_tokens": "Histogram of maximum number of requested generation tokens.",
    "request_params_max_tokens": "Histogram of the max_tokens request parameter.",
    "request_prefill_kv_computed_tokens": "Histogram of new KV tokens computed during prefill (excluding cached tokens).",
}


def one_two_five(limit: int) -> tuple[float, ...]:
    """Bucket bounds 1, 2, 5, 10, ... up to `limit`, as vLLM makes them from the context length."""
    bounds = (digit * 10**power for power in range(len(str(limit))) for digit in (1, 2, 5))
    return tuple(float(bound) for bound in bounds if bound <= limit)


@dataclass(slots=True, kw_only=True)
class SequenceTimes:
    """When what happened to one sequence, in seconds of the driver's clock. None: not yet."""

    prompt_tokens: int
    max_tokens: int
    arrived: float
    scheduled: float | None = None
    first_token: float | None = None
    last_token: float | None = None
    tokens: int = 0
    preemptions: int = 0


class EngineMetrics:
    """All series of one engine, each exported from the start."""

    def __init__(self, *, model_name: str, limits: EngineLimits, max_model_len: int) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._model = model_name
        self._limits = limits
        buckets = one_two_five(max_model_len)
        self._counters = {name: self._counter(name, text) for name, text in _COUNTERS.items()}
        self._gauges = {name: self._gauge(name, text) for name, text in _GAUGES.items()}
        self._times = {name: self._histogram(name, text, _REQUEST_SECONDS) for name, text in _REQUEST_TIMES.items()}
        self._sizes = {name: self._histogram(name, text, buckets) for name, text in _REQUEST_TOKENS.items()}
        self._choices = self._histogram("request_params_n", "Histogram of the n request parameter.", (1, 2, 5, 10, 20))
        self._request_preemptions = self._histogram(
            "request_num_preemptions", "Histogram of the number of times a request was preempted.", (1, 2, 3, 4, 5, 10, 20)
        )
        self._step_tokens = self._histogram(
            "iteration_tokens_total", "Histogram of number of tokens per engine_step.", _STEP_TOKENS
        )
        self._first_token = self._histogram(
            "time_to_first_token_seconds", "Histogram of time to first token in seconds.", _FIRST_TOKEN_SECONDS
        )
        self._between_tokens = self._histogram(
            "inter_token_latency_seconds", "Histogram of inter-token latency in seconds.", _TOKEN_SECONDS
        )
        self._per_output_token = self._histogram(
            "request_time_per_output_token_seconds", "Histogram of time_per_output_token_seconds per request.", _TOKEN_SECONDS
        )
        self._finished = self._by(
            "request_success",
            "Count of successfully processed requests.",
            finished_reason=("stop", "length", "abort", "error", "repetition"),
        )
        self._by_source = self._by(
            "prompt_tokens_by_source",
            "Number of prompt tokens by source.",
            source=("local_compute", "local_cache_hit", "external_kv_transfer"),
        )
        self._waiting_by_reason = self._waiting()
        self._rejections = Counter(
            "vllm:admission_rejections",
            "Number of admission attempts rejected by a queue limit, by reason.",
            ("model_name", "reason"),
            registry=self.registry,
        )
        for reason in ("max_num_queued_reqs", "max_num_queued_tokens"):
            self._rejections.labels(model_name, reason)
        self._cache_config()
        self.idle()

    def render(self) -> bytes:
        """The text exposition."""
        return generate_latest(self.registry)

    def submitted(self, *, choices: int, max_tokens: Sequence[int]) -> None:
        """A request came in; `max_tokens` holds the limit of each of its sequences."""
        self._choices.observe(choices)
        self._sizes["request_max_num_generation_tokens"].observe(max(max_tokens))

    def rejected(self) -> None:
        """A request found the queue full."""
        self._rejections.labels(self._model, "max_num_queued_reqs").inc()

    def idle(self) -> None:
        """Nothing runs."""
        self._load(running=0, waiting=0, kv_usage=0.0)

    def stepped(self, step: Step) -> None:
        """A step ran."""
        self._load(running=step.running, waiting=step.waiting, kv_usage=step.kv_blocks_used / self._limits.kv_blocks)
        self._counters["generation_tokens"].inc(len(step.produced))
        self._counters["num_preemptions"].inc(len(step.preempted))
        self._step_tokens.observe(step.prefill_tokens + len(step.produced))

    def first_token(self, times: SequenceTimes, at: float) -> None:
        """A sequence's prompt is computed and its first token is out."""
        self._first_token.observe(at - times.arrived)
        self._counters["prompt_tokens"].inc(times.prompt_tokens)
        self._counters["prefix_cache_queries"].inc(times.prompt_tokens)
        self._by_source["local_compute"].inc(times.prompt_tokens)

    def next_token(self, seconds: float) -> None:
        """One more token, `seconds` after the one before."""
        self._between_tokens.observe(seconds)

    def finished(self, times: SequenceTimes, reason: str, at: float) -> None:
        """A sequence has all its tokens.

        Raises:
            ValueError: It has none yet.
        """
        if times.scheduled is None or times.first_token is None or times.last_token is None:
            raise ValueError("a sequence without a token has not finished")
        self._finished[reason].inc()
        spans = {
            "e2e_request_latency_seconds": at - times.arrived,
            "request_queue_time_seconds": times.scheduled - times.arrived,
            "request_inference_time_seconds": times.last_token - times.scheduled,
            "request_prefill_time_seconds": times.first_token - times.scheduled,
            "request_decode_time_seconds": times.last_token - times.first_token,
        }
        for name, seconds in spans.items():
            self._times[name].observe(seconds)
        self._finished_sizes(times)
        self._per_output_token.observe((times.last_token - times.first_token) / max(1, times.tokens - 1))

    def _finished_sizes(self, times: SequenceTimes) -> None:
        self._sizes["request_prompt_tokens"].observe(times.prompt_tokens)
        self._sizes["request_prefill_kv_computed_tokens"].observe(times.prompt_tokens)
        self._sizes["request_generation_tokens"].observe(times.tokens)
        self._sizes["request_params_max_tokens"].observe(times.max_tokens)
        self._request_preemptions.observe(times.preemptions)

    def _load(self, *, running: int, waiting: int, kv_usage: float) -> None:
        self._gauges["num_requests_running"].set(running)
        self._gauges["num_requests_waiting"].set(waiting)
        self._waiting_by_reason.set(waiting)
        self._gauges["kv_cache_usage_perc"].set(kv_usage)

    def _counter(self, name: str, text: str) -> Counter:
        return Counter(f"vllm:{name}", text, LABELS, registry=self.registry).labels(self._model, ENGINE)

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(f"vllm:{name}", text, LABELS, registry=self.registry).labels(self._model, ENGINE)

    def _histogram(self, name: str, text: str, buckets: Sequence[float]) -> Histogram:
        return Histogram(f"vllm:{name}", text, LABELS, buckets=buckets, registry=self.registry).labels(self._model, ENGINE)

    def _by(self, name: str, text: str, **label: Sequence[str]) -> dict[str, Counter]:
        ((extra, values),) = label.items()
        counter = Counter(f"vllm:{name}", text, (*LABELS, extra), registry=self.registry)
        return {value: counter.labels(self._model, ENGINE, value) for value in values}

    def _waiting(self) -> Gauge:
        gauge = Gauge(
            "vllm:num_requests_waiting_by_reason",
            "Number of waiting requests by reason. Reason labels: 'capacity' = waiting for scheduling capacity; "
            "'deferred' = deferred by transient constraints.",
            (*LABELS, "reason"),
            registry=self.registry,
        )
        gauge.labels(self._model, ENGINE, "deferred").set(0)
        return gauge.labels(self._model, ENGINE, "capacity")

    def _cache_config(self) -> None:
        config = {
            "engine": ENGINE,
            "block_size": self._limits.block_tokens,
            "cache_dtype": "auto",
            "enable_prefix_caching": False,
            "kv_cache_size_tokens": self._limits.kv_blocks * self._limits.block_tokens,
            "num_gpu_blocks": self._limits.kv_blocks,
        }
        gauge = Gauge("vllm:cache_config_info", "Information of the LLMEngine CacheConfig", tuple(config), registry=self.registry)
        gauge.labels(**{name: str(value) for name, value in config.items()}).set(1)
