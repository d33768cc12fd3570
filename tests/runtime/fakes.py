"""A small engine that does what a test tells it, and the gateway's real applications before it, all on loopback."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

import aiohttp
from aiohttp import web
from aiohttp.test_utils import TestServer
from yarl import URL

from warmfront_runtime.gateway.engine import EngineClient
from warmfront_runtime.gateway.pod import Pod

MODEL = "tiny"
LABELS = {"inferenceservice": "chat", "inferenceservice_namespace": "ml"}

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


def chunk(content: str | None, *, finish: str | None = None) -> bytes:
    delta = {"role": "assistant", "content": ""} if content is None else {"content": content}
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": MODEL,
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }
    return b"data: " + json.dumps(body, separators=(",", ":")).encode() + b"\n\n"


def usage_chunk(prompt: int, output: int) -> bytes:
    usage = {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output}
    body = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": MODEL, "choices": [], "usage": usage}
    return b"data: " + json.dumps(body, separators=(",", ":")).encode() + b"\n\n"


DONE = b"data: [DONE]\n\n"


@dataclass
class Received:
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> dict:
        return json.loads(self.body)


@dataclass
class FakeEngine:
    """`answer` serves the next requests; `received` is what came; `aborted` is set when a client of ours left early."""

    answer: Answer | None = None
    health_status: int = 200
    metrics: str = ""
    received: list[Received] = field(default_factory=list)
    aborted: asyncio.Event = field(default_factory=asyncio.Event)
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    on_health: Callable[[], Awaitable[object]] | None = None
    on_metrics: Callable[[], Awaitable[object]] | None = None

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self.received.append(Received(request.path, request.query_string, request.headers, body))
        self.asked.set()
        assert self.answer is not None, "the test expected no request to the engine"
        try:
            return await self.answer(request)
        except asyncio.CancelledError:
            self.aborted.set()
            raise

    def app(self) -> web.Application:
        app = web.Application(client_max_size=1 << 26)
        app.router.add_get("/health", self._health)
        app.router.add_get("/metrics", self._metrics)
        app.router.add_route("*", "/{path:.*}", self.handle)
        return app

    async def _health(self, _: web.Request) -> web.Response:
        if self.on_health is not None:
            await self.on_health()
        return web.Response(status=self.health_status)

    async def _metrics(self, _: web.Request) -> web.Response:
        if self.on_metrics is not None:
            await self.on_metrics()
        return web.Response(text=self.metrics)


def stream(*pieces: bytes, then: Answer | None = None) -> Answer:
    """An event stream in exactly these writes; `then` goes on from there."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece)
            await asyncio.sleep(0)
        if then is not None:
            return await then(request)
        await response.write_eof()
        return response

    return answer


def reply(payload: object, status: int = 200) -> Answer:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.json_response(payload, status=status)

    return answer


async def hang(_: web.Request) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError


async def die(request: web.Request) -> web.StreamResponse:
    """The engine's process is gone: its sockets are cut."""
    assert request.transport is not None
    request.transport.abort()
    await asyncio.sleep(0.01)
    return web.Response()


@dataclass
class Gateway:
    """A running gateway: its shared state, an HTTP client, and the addresses of both ports."""

    pod: Pod
    http: aiohttp.ClientSession
    url: str
    admin_url: str
    engine: FakeEngine
    engine_client: EngineClient
    engine_server: TestServer

    @property
    def pod_host(self) -> str:
        return URL(self.url).host

    @property
    def pod_port(self) -> int:
        return URL(self.url).port

    def post(self, path: str, payload: object, headers: Mapping[str, str] | None = None):
        return self.http.post(self.url + path, json=payload, headers=headers)

    def chat(self, *, stream: bool = True, **more: object):
        messages = [{"role": "user", "content": "hi"}]
        return self.post("/v1/chat/completions", {"model": MODEL, "messages": messages, "stream": stream, **more})

    def value(self, name: str, **labels: str) -> float | None:
        return self.pod.metrics.registry.get_sample_value(f"warmfront_{name}", {**LABELS, **labels})

    def outcomes(self) -> dict[str, float]:
        """Arrivals, and each outcome that occurred."""
        counts = {o: self.value("gateway_requests_total", outcome=o) for o in OUTCOMES}
        return {"arrivals": self.value("gateway_arrivals_total")} | {o: n for o, n in counts.items() if n}

    async def settled(self) -> None:
        """Wait until nothing is in flight."""
        async with asyncio.timeout(5):
            await self.pod.idle.wait()


async def until(holds: Callable[[], object]) -> None:
    """Wait for something that no event tells; the caller bounds the time."""
    while not holds():  # noqa: ASYNC110
        await asyncio.sleep(0.001)


OUTCOMES = ("served", "shed", "abandoned", "failed", "refused")

MakeGateway = Callable[..., Awaitable[Gateway]]
