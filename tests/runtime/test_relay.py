"""The engine's metrics under the service's labels: read back with Prometheus' own parser."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from warmfront_runtime.gateway.relay import relabelled

LABELS = {"inferenceservice": "chat", "inferenceservice_namespace": "ml"}


def samples(text: str) -> dict[tuple, float]:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@given(st.lists(st.tuples(st.text(max_size=20), st.floats(allow_nan=False)), max_size=5))
def test_every_sample_of_a_real_exposition_keeps_its_labels_and_value_and_gets_ours(values: list[tuple[str, float]]):
    registry = CollectorRegistry()
    gauge = Gauge("vllm:num_requests_waiting", 'Waiting, "so to say".\nNext line.', ["model_name"], registry=registry)
    Counter("vllm:request_success", "Done.", registry=registry).inc(1e20)
    Histogram("vllm:time_to_first_token_seconds", "TTFT.", ["engine"], registry=registry).labels("0").observe(0.25)
    for label, value in values:
        gauge.labels(label).set(value)
    text = generate_latest(registry).decode()
    expected = {(name, frozenset(labels | LABELS.items())): value for (name, labels), value in samples(text).items()}
    assert samples(relabelled(text, LABELS)) == expected
    assert [line for line in relabelled(text, LABELS).splitlines() if line.startswith("#")] == [
        line for line in text.splitlines() if line.startswith("#")
    ]


OURS = 'inferenceservice="chat",inferenceservice_namespace="ml"'
LINES = {
    "no labels": ("up 1", f"up{{{OURS}}} 1\n"),
    "empty labels": ("up{} 1", f"up{{{OURS}}} 1\n"),
    "labels": ('up{a="b"} 1', f'up{{{OURS},a="b"}} 1\n'),
    "a comma at the end": ('up{a="b",} 1', f'up{{{OURS},a="b"}} 1\n'),
    "braces and blanks in a value": ('up{a="{ } , \\" x"} 1', f'up{{{OURS},a="{{ }} , \\" x"}} 1\n'),
    "a value that only looks like our label": (
        'up{a=",inferenceservice=\\"x\\""} 1',
        f'up{{{OURS},a=",inferenceservice=\\"x\\""}} 1\n',
    ),
    "a time": ("up 1 1700000000000", f"up{{{OURS}}} 1 1700000000000\n"),
    "no number": ("up NaN\nup +Inf", f"up{{{OURS}}} NaN\nup{{{OURS}}} +Inf\n"),
    "windows line ends": ("up 1\r\n", f"up{{{OURS}}} 1\n"),
    "our label already there": ('up{inferenceservice="spoofed"} 1', ""),
    "a name that is ours": ('warmfront_gateway_warm{a="b"} 1\n# TYPE warmfront_gateway_warm gauge', ""),
    "broken lines": ('up{a="b} 1\nup\nup one\n{"up"} 1\nup{a=b} 1\n<html>\nup1', ""),
    "other comments": ("# EOF\n# just words\n# TYPE up gauge", "# TYPE up gauge\n"),
    "nothing": ("", ""),
}


@pytest.mark.parametrize("case", LINES)
def test_lines(case: str):
    text, expected = LINES[case]
    assert relabelled(text, LABELS) == expected


@given(st.text(alphabet=st.sampled_from('up{}a="\\ ,1#\nE\r'), max_size=60))
def test_whatever_the_engine_writes_the_result_can_be_read(text: str):
    samples(relabelled(text, LABELS))
