"""Every series that the gateway exports, at zero from the start, with the service's two constant labels."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

from warmfront_runtime.errors import Outcome

PREFIX = "warmfront_"
LABEL_SERVICE = "inferenceservice"
LABEL_NAMESPACE = "inferenceservice_namespace"
CONSTANT_LABELS = (LABEL_SERVICE, LABEL_NAMESPACE)
PHASES = ("engine", "warmup")

# Bounds as vLLM's histograms have them, cut to what an operator sets objectives for.
TTFT_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 5, 7.5, 10, 20, 40, 80, 160)
ITL_BUCKETS = (0.002, 0.005, 0.01, 0.015, 0.02, 0.025, 0.03, 0.04, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 1, 2.5, 5)
DURATION_BUCKETS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 20, 30, 45, 60, 120, 240, 480, 960, 1920)


class GatewayMetrics:
    """The gateway's series, bound to one service. Counters and gauges are ready to `inc`, `set` and `observe`."""

    def __init__(self, *, service: str, namespace: str) -> None:
        # A `_created` twin of every series would double the scrape, and nobody reads it.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        self.labels = {LABEL_SERVICE: service, LABEL_NAMESPACE: namespace}
        self.arrivals = self._counter("gateway_arrivals", "Generation requests that wanted to be served.")
        self.prompt_tokens = self._counter("gateway_prompt_tokens", "Prompt tokens of served requests, by the engine's count.")
        self.output_tokens = self._counter("gateway_output_tokens", "Output tokens of served requests, by the engine's count.")
        self.requests = self._requests()
        self.time_to_first_token = self._histogram(
            "gateway_time_to_first_token_seconds", "From a streaming request's headers to its first content.", TTFT_BUCKETS
        )
        self.inter_token_latency = self._histogram(
            "gateway_inter_token_latency_seconds", "Between two chunks with content of one stream.", ITL_BUCKETS
        )
        self.request_duration = self._histogram(
            "gateway_request_duration_seconds", "From headers to last byte, of served requests.", DURATION_BUCKETS
        )
        self.in_flight = self._gauge("gateway_requests_in_flight", "Requests that hold one of the pod's slots.")
        self.warm = self._gauge("gateway_warm", "1 after the warm-up's generations ran.")
        self.draining = self._gauge("gateway_draining", "1 from SIGTERM on.")
        self.engine_scrape_up = self._gauge(
            "gateway_engine_scrape_up", "1 where this answer carries the engine's metrics, 0 where they could not be had."
        )
        self.cold_start = self._cold_start()

    def _counter(self, name: str, text: str) -> Counter:
        return Counter(PREFIX + name, text, CONSTANT_LABELS, registry=self.registry).labels(**self.labels)

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(PREFIX + name, text, CONSTANT_LABELS, registry=self.registry).labels(**self.labels)

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
        return Histogram(PREFIX + name, text, CONSTANT_LABELS, buckets=buckets, registry=self.registry).labels(**self.labels)

    def _requests(self) -> dict[Outcome, Counter]:
        family = Counter(
            PREFIX + "gateway_requests",
            "Generation requests that ended, by outcome.",
            (*CONSTANT_LABELS, "outcome"),
            registry=self.registry,
        )
        return {outcome: family.labels(**self.labels, outcome=outcome.value) for outcome in Outcome}

    def _cold_start(self) -> dict[str, Gauge]:
        family = Gauge(
            PREFIX + "cold_start_seconds",
            "Seconds that a phase of the last start took; 0 while it has not ended.",
            (*CONSTANT_LABELS, "phase"),
            registry=self.registry,
        )
        return {phase: family.labels(**self.labels, phase=phase) for phase in PHASES}
