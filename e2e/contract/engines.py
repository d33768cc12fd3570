"""The engines that the contract is held against: each is a running server at a base URL."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO, Final

import httpx

from e2e.vllm.environment import default_environment
from e2e.vllm.launch import VARIABLES, serve_command
from e2e.vllm.service import engine_on_loopback

MODEL: Final = "smollm2"
MAX_MODEL_LEN: Final = 2048
MAX_NUM_SEQS: Final = 16
ROOT: Final = Path(__file__).parents[2]


@dataclass(frozen=True, kw_only=True)
class Engine:
    """A server under test."""

    base_url: str
    model: str = MODEL
    max_model_len: int = MAX_MODEL_LEN
    max_num_seqs: int = MAX_NUM_SEQS


@contextmanager
def simulator() -> Iterator[Engine]:
    """The simulator, as a process on a loopback port."""
    flags = {
        "model": "enginesim/smollm2",
        "served-model-name": MODEL,
        "max-model-len": MAX_MODEL_LEN,
        "max-num-seqs": MAX_NUM_SEQS,
    }
    arguments = [f"--{name}={value}" for name, value in flags.items()]
    variables = {"ENGINESIM_LOAD_SECONDS": "0.2", "ENGINESIM_KV_CAPACITY_TOKENS": "93184"}
    yield from _served(
        lambda port: [sys.executable, "-m", "e2e.enginesim", "--host=127.0.0.1", f"--port={port}", *arguments], variables, 30
    )


@contextmanager
def vllm() -> Iterator[Engine]:
    """Real vLLM from its own environment; `python -m e2e.vllm setup` makes it.

    Raises:
        NotSetUpError: It is not there.
    """
    paths = default_environment().paths()
    with TemporaryDirectory() as sockets:  # which vLLM leaves behind
        variables = {**VARIABLES, "TMPDIR": sockets}
        yield from _served(lambda port: serve_command(**paths, port=port, name=MODEL), variables, 300)


@contextmanager
def vllm_in_pod() -> Iterator[Engine]:
    """The engine of the shared vLLM service (fixture `vllm_service`), which saves a second start."""
    with engine_on_loopback() as url:
        yield Engine(base_url=url)


@contextmanager
def given_url() -> Iterator[Engine]:
    """The server at `WARMFRONT_CONTRACT_URL`, for example vLLM in a pod, started with the flags above."""
    yield Engine(base_url=os.environ["WARMFRONT_CONTRACT_URL"].rstrip("/"))


def _served(command: Callable[[int], Sequence[str]], variables: Mapping[str, str], patience_seconds: float) -> Iterator[Engine]:
    port = _free_port()
    engine = Engine(base_url=f"http://127.0.0.1:{port}")
    with (
        TemporaryFile("w+") as log,
        subprocess.Popen(command(port), cwd=ROOT, env={**os.environ, **variables}, stdout=log, stderr=log) as process,
    ):
        try:
            _wait_healthy(engine, process, log, patience_seconds)
            yield engine
        finally:
            process.terminate()
            _reap(process)


def _wait_healthy(engine: Engine, process: subprocess.Popen[bytes], log: IO[str], patience_seconds: float) -> None:
    deadline = time.monotonic() + patience_seconds
    with httpx.Client(base_url=engine.base_url, trust_env=False) as client:
        while not _healthy(client):
            if process.poll() is not None or time.monotonic() > deadline:
                log.seek(0)
                raise AssertionError(f"the engine did not start (status {process.poll()}):\n{log.read()[-4000:]}")
            time.sleep(0.1)


def _healthy(client: httpx.Client) -> bool:
    try:
        return client.get("/health").status_code == httpx.codes.OK
    except httpx.TransportError:
        return False


def _reap(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(timeout=30)
    except subprocess.TimeoutExpired:
        process.kill()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
