"""The backfilled counters, read by an independent parser and by the real promtool."""

import shutil
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from e2e.history.backfill import make_blocks
from e2e.history.errors import BackfillError
from e2e.history.openmetrics import MeanTokens, Service, Window, render
from e2e.history.trace import RateTrace

TRACE = RateTrace([0.0, 60.0, 120.0], [0.0, 2.0, 1.0], end_seconds=180.0)
WINDOW = Window(start_seconds=0.0, end_seconds=160.0, shift_seconds=1_700_000_000.0)
SERVICE = Service(namespace="ml", name="chat", target_labels={"job": "pods", "pod": 'a"b'})
TOKENS = MeanTokens(prompt=100, output=40)


def samples(name: str) -> list[Sample]:
    text = "\n".join(render(TRACE, WINDOW, SERVICE, TOKENS)) + "\n"
    families = text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
    return [sample for family in families for sample in family.samples if sample.name == name]


def seconds(sample: Sample) -> float:
    return float(str(sample.timestamp)) - WINDOW.shift_seconds


def test_counters_are_the_area_under_the_recorded_rate() -> None:
    got = {seconds(sample): sample.value for sample in samples("warmfront_gateway_arrivals_total")}
    assert got[10.0] == 0
    assert got[55.0] == 0
    assert got[70.0] == pytest.approx(20)
    assert got[115.0] == pytest.approx(110)
    assert got[130.0] == pytest.approx(130)
    assert got[160.0] == pytest.approx(160)


def test_samples_are_evenly_spaced_and_end_with_the_window() -> None:
    times = [seconds(sample) for sample in samples("warmfront_gateway_arrivals_total")]
    assert times == [10.0 + 15.0 * index for index in range(11)]


def test_tokens_are_requests_times_their_mean_and_only_served_ones_count() -> None:
    assert samples("warmfront_gateway_prompt_tokens_total")[-1].value == pytest.approx(16_000)
    assert samples("warmfront_gateway_output_tokens_total")[-1].value == pytest.approx(6_400)
    outcomes = {sample.labels["outcome"]: sample.value for sample in samples("warmfront_gateway_requests_total")}
    assert outcomes == {"served": pytest.approx(160), "shed": 0, "abandoned": 0, "failed": 0, "refused": 0}


def test_each_series_names_the_service_and_keeps_its_target_labels() -> None:
    for sample in samples("warmfront_gateway_output_tokens_total"):
        labels = {"inferenceservice": "chat", "inferenceservice_namespace": "ml", "job": "pods", "pod": 'a"b'}
        assert sample.labels == labels


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs Debian's prometheus")
def test_the_real_promtool_makes_one_block(tmp_path: Path) -> None:
    blocks = make_blocks(render(TRACE, WINDOW, SERVICE, TOKENS), tmp_path / "blocks")
    assert [(block / "index").is_file() for block in blocks.iterdir()] == [True]


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs Debian's prometheus")
def test_what_promtool_refuses_is_told_in_its_words(tmp_path: Path) -> None:
    with pytest.raises(BackfillError, match="made no blocks"):
        make_blocks(["this is no metric", "# EOF"], tmp_path / "blocks")
