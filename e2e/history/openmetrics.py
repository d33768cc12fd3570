"""Past counters of a gateway as OpenMetrics text, from a recorded request rate. Pure."""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from e2e.history.trace import RateTrace

OUTCOMES = ("served", "shed", "abandoned", "failed", "refused")


@dataclass(frozen=True, kw_only=True)
class Service:
    """Whose history it is. `target_labels` are what Prometheus itself would have added when it scraped the pod."""

    namespace: str
    name: str
    target_labels: Mapping[str, str] = field(default_factory=dict)

    def labels(self, **more: str) -> str:
        """Return the label set in OpenMetrics' text form."""
        own = {"inferenceservice": self.name, "inferenceservice_namespace": self.namespace}
        merged = {**self.target_labels, **own, **more}
        return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in sorted(merged.items())) + "}"


@dataclass(frozen=True, kw_only=True)
class Window:
    """Which part of the trace becomes history, and when it was. All in seconds.

    `start_seconds` and `end_seconds` are trace times; `shift_seconds` is added to make them times of this world (unix).
    """

    start_seconds: float
    end_seconds: float
    shift_seconds: float
    spacing_seconds: float = 15.0

    def sample_times(self) -> Iterator[float]:
        """Trace times of the samples, `spacing_seconds` apart; the last is exactly the window's end."""
        count = int((self.end_seconds - self.start_seconds) // self.spacing_seconds)
        first = self.end_seconds - count * self.spacing_seconds
        return (first + index * self.spacing_seconds for index in range(count + 1))


@dataclass(frozen=True, kw_only=True)
class MeanTokens:
    """Mean tokens of a request."""

    prompt: float
    output: float


def render(trace: RateTrace, window: Window, service: Service, tokens: MeanTokens) -> Iterator[str]:
    """Yield the lines of an OpenMetrics text: a gateway's counters as if it had served the whole trace.

    Counters are the integral of the piecewise-constant rate (exact, monotone, not rounded to whole requests: a
    rate taken from them is the recorded rate at any window). All outcomes but `served` stay at zero, as a gateway
    exports them from its start.
    """
    times = list(window.sample_times())
    served = [trace.requests_until(at) - trace.requests_until(times[0]) for at in times]
    stamps = [f"{at + window.shift_seconds:.3f}" for at in times]

    def counter(name: str, factors: Mapping[str, float]) -> Iterator[str]:
        yield f"# TYPE {name} counter"
        for labels, factor in factors.items():
            prefix = f"{name}_total{labels} "
            yield from (f"{prefix}{count * factor:.9g} {stamp}" for count, stamp in zip(served, stamps, strict=True))

    outcomes = {service.labels(outcome=outcome): float(outcome == "served") for outcome in OUTCOMES}
    return itertools.chain(
        counter("warmfront_gateway_arrivals", {service.labels(): 1.0}),
        counter("warmfront_gateway_requests", outcomes),
        counter("warmfront_gateway_prompt_tokens", {service.labels(): tokens.prompt}),
        counter("warmfront_gateway_output_tokens", {service.labels(): tokens.output}),
        ["# EOF"],
    )


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
