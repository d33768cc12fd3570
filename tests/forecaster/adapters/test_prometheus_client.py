"""The client against a real HTTP server on loopback that plays Prometheus."""

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from warmfront_forecaster.adapters.prometheus_client import (
    MAX_POINTS,
    PrometheusClient,
    PrometheusEndpoint,
    PrometheusError,
    Sample,
    connect,
)

Answer = tuple[int, str]


def success(result: list[Any]) -> Answer:
    return 200, json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}})


@dataclass
class FakePrometheus:
    """Answers each request by `answer(path, params)`, and remembers what it was asked."""

    url: str
    answer: Callable[[str, dict[str, str]], Answer] = lambda _path, _params: success([])
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)


@pytest.fixture
def prometheus(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakePrometheus]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            params = {key: values[0] for key, values in parse_qs(parts.query).items()}
            fake.asked.append((parts.path, params))
            fake.headers.append(dict(self.headers))
            status, body = fake.answer(parts.path, params)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_args: object) -> None:
            """Keep the test's output clean."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    fake = FakePrometheus(url=f"http://127.0.0.1:{server.server_port}/prom")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield fake
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def client(prometheus: FakePrometheus) -> Iterator[PrometheusClient]:
    with connect(PrometheusEndpoint(url=prometheus.url + "/", timeout_seconds=2.0)) as opened:
        yield opened


def test_query_gives_labels_time_and_value(prometheus: FakePrometheus, client: PrometheusClient):
    prometheus.answer = lambda _path, _params: success([{"metric": {"pod": "a"}, "value": [1700000000.5, "2.5"]}])
    assert client.query("up", at=1_700_000_000.5) == [Sample(labels={"pod": "a"}, time=1_700_000_000.5, value=2.5)]
    assert prometheus.asked == [("/prom/api/v1/query", {"query": "up", "time": "1700000000.500"})]


def test_query_without_a_time_leaves_the_clock_to_prometheus(prometheus: FakePrometheus, client: PrometheusClient):
    assert client.query("up") == []
    assert prometheus.asked == [("/prom/api/v1/query", {"query": "up"})]


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf"])
def test_values_that_are_no_number_are_missing(value: str, prometheus: FakePrometheus, client: PrometheusClient):
    items = [{"metric": {"pod": "bad"}, "value": [1, value]}, {"metric": {"pod": "good"}, "value": [1, "0"]}]
    prometheus.answer = lambda _path, _params: success(items)
    assert [sample.labels["pod"] for sample in client.query("up")] == ["good"]


def test_a_range_leaves_gaps_and_bad_values_out(prometheus: FakePrometheus, client: PrometheusClient):
    values = [[0, "1"], [60, "NaN"], [180, "+Inf"], [240, "4"]]
    prometheus.answer = lambda _path, _params: success(
        [{"metric": {"pod": "a"}, "values": values}, {"metric": {"pod": "b"}, "values": [[0, "NaN"]]}]
    )
    (series,) = client.query_range("up", 0, 240, 60)
    assert (series.labels, series.times, series.values) == ({"pod": "a"}, (0.0, 240.0), (1.0, 4.0))


def test_a_long_range_is_asked_for_in_chunks_and_joined_by_labels(prometheus: FakePrometheus, client: PrometheusClient):
    def answer(_path: str, params: dict[str, str]) -> Answer:
        times = range(int(params["start"]), int(params["end"]) + 1, int(params["step"]))
        assert len(times) <= MAX_POINTS
        return success([{"metric": {"b": "2", "a": "1"}, "values": [[t, str(t / 60)] for t in times]}])

    prometheus.answer = answer
    steps = 2 * MAX_POINTS + 5
    (series,) = client.query_range("up", 600, 600 + 60 * (steps - 1), 60)
    assert series.values == tuple(float(10 + i) for i in range(steps))
    assert len(prometheus.asked) == 3


def test_a_range_that_ends_before_it_starts_is_empty_and_asks_nothing(prometheus: FakePrometheus, client: PrometheusClient):
    assert client.query_range("up", 100, 40, 60) == []
    assert prometheus.asked == []


def test_the_token_is_read_again_for_each_request(prometheus: FakePrometheus, tmp_path: Path):
    token = tmp_path / "token"
    with connect(PrometheusEndpoint(url=prometheus.url, token_file=token)) as client:
        for text in ("first\n", "second"):
            token.write_text(text)
            client.query("up")
    assert [headers["Authorization"] for headers in prometheus.headers] == ["Bearer first", "Bearer second"]


@pytest.mark.parametrize("content", [None, " \n"])
def test_an_unreadable_token_is_permanent_and_names_the_file(content: str | None, prometheus: FakePrometheus, tmp_path: Path):
    token = tmp_path / "token"
    if content is not None:
        token.write_text(content)
    with (
        connect(PrometheusEndpoint(url=prometheus.url, token_file=token)) as client,
        pytest.raises(PrometheusError, match=str(token)) as caught,
    ):
        client.query("up")
    assert not caught.value.retryable
    assert prometheus.asked == []


def test_the_tenant_is_sent_under_the_header_that_the_store_wants(prometheus: FakePrometheus):
    with connect(PrometheusEndpoint(url=prometheus.url, tenant_header="X-Scope-OrgID", tenant="team-a")) as client:
        client.query("up")
    assert prometheus.headers[0]["X-Scope-OrgID"] == "team-a"


@pytest.mark.parametrize(
    ("status", "retryable", "words"),
    [
        (400, False, "parse error"),
        (401, False, "PROMETHEUS_TOKEN_FILE"),
        (403, False, "tenant"),
        (404, False, "prometheus.url"),
        (422, False, "would not run"),
        (429, True, "again"),
        (500, True, "parse error"),
        (503, True, "busy"),
    ],
)
def test_each_refusal_says_whether_it_may_pass_and_what_to_do(
    status: int, *, retryable: bool, words: str, prometheus: FakePrometheus, client: PrometheusClient
):
    prometheus.answer = lambda _path, _params: (status, json.dumps({"status": "error", "error": "parse error at char 1"}))
    with pytest.raises(PrometheusError, match=words) as caught:
        client.query("up")
    assert caught.value.retryable is retryable
    assert len(prometheus.asked) == 1  # the caller decides when to ask again


@pytest.mark.parametrize(
    "body",
    ["<html>login</html>", "{}", '{"data": {"result": [1, "2"]}}', '{"data": {"result": [{"metric": {}, "value": "x"}]}}'],
    ids=["a web page", "empty", "a scalar", "no pair"],
)
def test_an_answer_of_another_shape_is_permanent(body: str, prometheus: FakePrometheus, client: PrometheusClient):
    prometheus.answer = lambda _path, _params: (200, body)
    with pytest.raises(PrometheusError, match=r"chart value prometheus\.url|Prometheus API") as caught:
        client.query("up")
    assert not caught.value.retryable


def test_a_failed_chunk_fails_the_whole_range(prometheus: FakePrometheus, client: PrometheusClient):
    prometheus.answer = lambda _path, params: success([]) if params["start"] == "0" else (503, "busy")
    with pytest.raises(PrometheusError) as caught:
        client.query_range("up", 0, MAX_POINTS, 1)
    assert caught.value.retryable


def test_nobody_listening_is_retryable(prometheus: FakePrometheus):
    port = prometheus.url.split(":")[2].split("/", maxsplit=1)[0]
    url = f"http://127.0.0.2:{port}"  # same port, another loopback address: surely free
    with connect(PrometheusEndpoint(url=url, timeout_seconds=1.0)) as client, pytest.raises(PrometheusError) as caught:
        client.query("up")
    assert caught.value.retryable


def test_silence_is_a_retryable_timeout(prometheus: FakePrometheus):
    asked = threading.Event()

    def never(_path: str, _params: dict[str, str]) -> Answer:
        asked.wait(5)
        return success([])

    prometheus.answer = never
    with (
        connect(PrometheusEndpoint(url=prometheus.url, timeout_seconds=0.05)) as client,
        pytest.raises(PrometheusError, match="in time") as caught,
    ):
        client.query("up")
    asked.set()
    assert caught.value.retryable


def test_a_missing_ca_file_is_permanent_and_names_the_setting(tmp_path: Path):
    endpoint = PrometheusEndpoint(url="https://127.0.0.1:9", ca_file=tmp_path / "ca.crt", timeout_seconds=1.0)
    with connect(endpoint) as client, pytest.raises(PrometheusError, match="PROMETHEUS_CA_FILE") as caught:
        client.query("up")
    assert not caught.value.retryable
