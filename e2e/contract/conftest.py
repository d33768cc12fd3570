"""Fixtures: one start per engine for the whole run, and clients of it."""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import httpx
import openai
import pytest

from e2e.conftest import in_local_cluster
from e2e.contract.engines import Engine, given_url, simulator, vllm, vllm_in_pod

Start = Callable[[], AbstractContextManager[Engine]]


def _engines() -> list[Any]:
    engines = [pytest.param(simulator, id="simulator"), pytest.param(vllm, id="vllm", marks=pytest.mark.vllm)]
    if os.environ.get("WARMFRONT_CONTRACT_URL"):
        engines.append(pytest.param(given_url, id="url"))
    return engines


@pytest.fixture(scope="session", params=_engines())
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """The server under test."""
    start: Start = request.param
    if start is vllm and in_local_cluster():
        request.getfixturevalue("vllm_service")
        start = vllm_in_pod
    with start() as running:
        yield running


@pytest.fixture(scope="session")
def http(engine: Engine) -> Iterator[httpx.Client]:
    """A plain client of it; the machine's proxy settings are not for loopback."""
    with httpx.Client(base_url=engine.base_url, trust_env=False, timeout=120) as client:
        yield client


@pytest.fixture(scope="session")
def client(engine: Engine) -> Iterator[openai.OpenAI]:
    """The official client."""
    with openai.DefaultHttpxClient(trust_env=False) as transport:
        yield openai.OpenAI(base_url=f"{engine.base_url}/v1", api_key="none", http_client=transport, max_retries=0)
