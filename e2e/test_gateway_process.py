"""The gateway as a process before the engine simulator as a process, on loopback: what a pod does, without the cluster."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import openai
import pytest
from openai.types import Completion

ROOT = Path(__file__).parent.parent
MODEL = "tiny"
START_SECONDS = 60
LABELS = 'inferenceservice="chat",inferenceservice_namespace="ml"'


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Both processes, and where they listen."""

    gateway: subprocess.Popen[bytes]
    engine: subprocess.Popen[bytes]
    url: str
    admin_url: str
    engine_url: str
    http: httpx.Client

    def ready(self) -> bool:
        """Whether the kubelet would call the pod Ready."""
        try:
            return self.http.get(f"{self.admin_url}/readyz").status_code == 200
        except httpx.TransportError:
            return False

    def metric(self, name: str) -> float:
        """One sample of the metrics page: `NAME` or `NAME{LABEL="..."}`, without the two constant labels."""
        name, _, own = name.rstrip("}").partition("{")
        wanted = f"{name}{{{LABELS}{',' + own if own else ''}"
        lines = self.http.get(f"{self.admin_url}/metrics").text.splitlines()
        return next(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(wanted))

    def client(self, base_url: str | None = None) -> openai.OpenAI:
        """OpenAI's client, without retries that would hide what happens."""
        url = f"{base_url or self.url}/v1"
        return openai.OpenAI(base_url=url, api_key="any", max_retries=0, http_client=openai.DefaultHttpxClient(trust_env=False))


def until(holds: Callable[[], bool], seconds: float) -> None:
    """Wait for something outside this process."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"still not so after {seconds} s"
        time.sleep(0.05)


@contextmanager
def running(command: list[str], log: Path, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process of ours, ended with the block; its output goes to `log`."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, **environment}, stdout=output, stderr=subprocess.STDOUT)
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@contextmanager
def started(folder: Path) -> Iterator[Pair]:
    """A gateway and an engine that takes a second to load; ready when the block begins. Logs are in `folder`."""
    http_port, metrics_port, engine_port = free_port(), free_port(), free_port()
    engine_url = f"http://127.0.0.1:{engine_port}"
    config = folder / "gateway.json"
    config.write_text(json.dumps({"service": "chat", "namespace": "ml", "modelName": MODEL, "engineUrl": engine_url}))
    flags = ["--host", "127.0.0.1", "--port", str(engine_port), "--served-model-name", MODEL]
    with (
        running(
            [sys.executable, "-m", "warmfront_runtime.gateway"],
            folder / "gateway.log",
            WARMFRONT_GATEWAY_CONFIG=str(config),
            WARMFRONT_GATEWAY_HOST="127.0.0.1",
            WARMFRONT_GATEWAY_HTTP_PORT=str(http_port),
            WARMFRONT_GATEWAY_METRICS_PORT=str(metrics_port),
            WARMFRONT_GATEWAY_ACCEPT_AFTER_SIGTERM_SECONDS="1",
        ) as gateway,
        running([sys.executable, "-m", "e2e.enginesim", *flags], folder / "engine.log", ENGINESIM_LOAD_SECONDS="1") as engine,
        httpx.Client(trust_env=False, timeout=10) as http,
    ):
        made = Pair(
            gateway=gateway,
            engine=engine,
            url=f"http://127.0.0.1:{http_port}",
            admin_url=f"http://127.0.0.1:{metrics_port}",
            engine_url=engine_url,
            http=http,
        )
        until(made.ready, START_SECONDS)
        yield made


@pytest.fixture(scope="module")
def shared_pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """For tests that leave both processes as they are."""
    with started(tmp_path_factory.mktemp("pair")) as pair:
        yield pair


@pytest.fixture
def own_pair(tmp_path: Path) -> Iterator[Pair]:
    """For tests that end one of the processes."""
    with started(tmp_path) as pair:
        yield pair


def ask(client: openai.OpenAI, tokens: int) -> openai.Stream[Completion]:
    """A streamed completion of exactly `tokens` tokens."""
    return client.completions.create(model=MODEL, prompt="Count the sheep.", max_tokens=tokens, stream=True)


def text_of(stream: openai.Stream[Completion]) -> str:
    """All the text that a stream gives from here on."""
    return "".join(chunk.choices[0].text for chunk in stream)


def test_a_warm_pod_gives_what_its_engine_gives_and_counts_it(shared_pair: Pair) -> None:
    """The engine's text is the same for the same prompt, so both ways can be compared."""
    pair = shared_pair
    assert pair.metric("warmfront_gateway_warm") == 1
    assert pair.metric('warmfront_cold_start_seconds{phase="warmup"}') > 0
    assert text_of(ask(pair.client(), 12)) == text_of(ask(pair.client(pair.engine_url), 12)) != ""
    assert pair.metric('warmfront_gateway_requests_total{outcome="served"}') == 1
    assert pair.metric("warmfront_gateway_arrivals_total") == 1
    assert pair.metric("warmfront_gateway_output_tokens_total") == 12
    assert pair.metric("vllm:num_requests_waiting") == 0


def test_a_client_that_leaves_frees_the_engine(shared_pair: Pair) -> None:
    """Seen in the engine's own metrics, through the relay."""
    pair = shared_pair
    stream = ask(pair.client(), 4000)
    next(iter(stream))
    until(lambda: pair.metric("vllm:num_requests_running") == 1, 10)
    stream.close()
    until(lambda: pair.metric("vllm:num_requests_running") == 0, 10)
    until(lambda: pair.metric('warmfront_gateway_requests_total{outcome="abandoned"}') == 1, 10)


def test_after_sigterm_a_running_stream_ends_whole_new_requests_are_served_then_refused_and_the_exit_is_clean(
    own_pair: Pair,
) -> None:
    """The order of a drain, with a stream across all of it."""
    pair = own_pair
    chunks = iter(ask(pair.client(), 300))
    text = next(chunks).choices[0].text
    pair.gateway.send_signal(signal.SIGTERM)
    until(lambda: not pair.ready(), 1)
    assert text_of(ask(pair.client(), 2)), "the endpoints do not know yet"
    until(lambda: pair.metric("warmfront_gateway_draining") == 1, 1)
    with pytest.raises(openai.InternalServerError, match="stopping"):  # noqa: PT012
        while True:
            text_of(ask(pair.client(), 1))
    text += "".join(chunk.choices[0].text for chunk in chunks)
    assert text == text_of(ask(pair.client(pair.engine_url), 300))
    assert pair.gateway.wait(10) == 0


def test_an_engine_that_is_killed_ends_its_streams_with_an_error_and_the_pods_readiness(own_pair: Pair) -> None:
    """The gateway itself stays up, and tells Prometheus."""
    pair = own_pair
    stream = ask(pair.client(), 4000)
    next(iter(stream))
    pair.engine.kill()
    with pytest.raises(openai.APIError, match="broke off"):
        text_of(stream)
    until(lambda: not pair.ready(), 5)
    assert pair.metric('warmfront_gateway_requests_total{outcome="failed"}') == 1
    assert pair.metric("warmfront_gateway_engine_scrape_up") == 0
    assert pair.http.get(f"{pair.admin_url}/engine/livez").status_code == 200, "it restarts by itself"
