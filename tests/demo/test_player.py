"""The load player against a real HTTP server on loopback."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from aiohttp import web

from e2e.load.log import read_log, result_log
from e2e.load.player import Target, play
from e2e.load.records import RequestRecord, error_counts, quantile, summarize
from e2e.load.schedule import PlannedRequest

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
TOKEN = b'data: {"choices": [{"delta": {"content": "word"}}]}\n\n'


class Server:
    """Answers as told by the first word of the prompt, and remembers the connections it saw."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, object]] = []
        self.peers: set[int] = set()
        self.behaviour: Handler = self.serve

    async def handle(self, request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        self.peers.add(request.transport.get_extra_info("peername")[1])
        self.bodies.append(await request.json())
        return await self.behaviour(request)

    async def serve(self, request: web.Request) -> web.StreamResponse:
        return await self._stream(request, [TOKEN, TOKEN, b'data: {"choices": []}\n\n', b"data: [DONE]\n\n"])

    async def cut(self, request: web.Request) -> web.StreamResponse:
        return await self._stream(request, [TOKEN])

    async def fail(self, request: web.Request) -> web.StreamResponse:
        return await self._stream(request, [TOKEN, b'data: {"error": {"message": "engine died"}}\n\n'])

    async def shed(self, _request: web.Request) -> web.StreamResponse:
        return web.json_response({"error": "full"}, status=503)

    async def hang(self, _request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(5)
        return web.Response()

    async def _stream(self, request: web.Request, chunks: list[bytes]) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for chunk in chunks:
            await response.write(chunk)
        return response


@pytest.fixture
async def server() -> AsyncIterator[tuple[Server, Target]]:
    behaviour = Server()
    app = web.Application()
    app.router.add_post("/v1/chat/completions", behaviour.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    yield behaviour, Target(url=f"http://127.0.0.1:{port}", model="m", request_timeout_seconds=0.5)
    await runner.cleanup()


def requests(count: int, *, apart: float = 0.01) -> list[PlannedRequest]:
    return [PlannedRequest(number=n, at_seconds=n * apart, prompt_tokens=5, output_tokens=2) for n in range(count)]


async def outcomes(server: tuple[Server, Target], behaviour: Handler, count: int = 1) -> list[RequestRecord]:
    records: list[RequestRecord] = []
    server[0].behaviour = behaviour
    await play(requests(count), server[1], record=records.append)
    return records


async def test_a_served_request_is_recorded_with_its_times(server: tuple[Server, Target]) -> None:
    (record,) = await outcomes(server, server[0].serve)
    assert (record.status, record.error, record.output_chunks) == (200, None, 2)
    assert record.first_token_at is not None
    assert record.planned_at <= record.sent_at <= record.first_token_at <= record.ended_at


async def test_each_request_asks_for_its_lengths_on_a_connection_of_its_own(server: tuple[Server, Target]) -> None:
    await outcomes(server, server[0].serve, count=4)
    assert len(server[0].peers) == 4
    assert {body["max_tokens"] for body in server[0].bodies} == {2}
    prompts = [body["messages"][0]["content"].split() for body in server[0].bodies]  # type: ignore[index]
    assert [len(prompt) for prompt in prompts] == [5] * 4
    assert len({prompt[0] for prompt in prompts}) == 4


@pytest.mark.parametrize(
    ("behaviour", "error"),
    [("cut", "ended before [DONE]"), ("fail", "engine died"), ("shed", "HTTP 503"), ("hang", "no end after")],
)
async def test_what_is_not_the_whole_answer_is_a_failure(server: tuple[Server, Target], behaviour: str, error: str) -> None:
    (record,) = await outcomes(server, getattr(server[0], behaviour))
    assert record.failed
    assert record.error is not None
    assert error in record.error


async def test_nobody_listening_is_a_failure_not_a_crash() -> None:
    records: list[RequestRecord] = []
    await play(requests(2), Target(url="http://127.0.0.1:9", model="m"), record=records.append)
    assert [record.status for record in records] == [None, None]
    assert list(error_counts(records).values()) == [2]


async def test_slow_answers_do_not_hold_later_requests_back(server: tuple[Server, Target]) -> None:
    records = await outcomes(server, server[0].hang, count=5)
    assert max(record.sent_at - record.planned_at for record in records) < 0.3
    assert len(records) == 5


async def test_the_log_holds_what_was_recorded(server: tuple[Server, Target], tmp_path: Path) -> None:
    seen: list[RequestRecord] = []
    with result_log(tmp_path / "log" / "requests.jsonl", seen.append) as record:
        await play(requests(3), server[1], record=record)
    assert read_log(tmp_path / "log" / "requests.jsonl") == seen
    assert len(seen) == 3


def record_with(ttft: float | None, *, error: str | None = None) -> RequestRecord:
    first = None if ttft is None else 10 + ttft
    return RequestRecord(
        number=0, planned_at=10, sent_at=10, first_token_at=first, ended_at=12, status=200, error=error, output_chunks=1
    )


def test_figures_are_of_the_served_and_failures_are_counted() -> None:
    records = [record_with(0.01 * n) for n in range(1, 101)] + [record_with(9.0, error="cut"), record_with(None, error="cut")]
    figures = summarize(records)
    assert (figures.sent, figures.failed) == (102, 2)
    assert figures.ttft_p50_seconds == pytest.approx(0.5)
    assert figures.ttft_p95_seconds == pytest.approx(0.95)
    assert figures.duration_p95_seconds == pytest.approx(2)
    assert error_counts(records) == {"cut": 2}


@pytest.mark.parametrize(
    ("values", "q", "result"), [([], 0.5, None), ([3.0], 0.95, 3.0), ([1, 2, 3, 4], 0.5, 2), ([4, 1], 1.0, 4)]
)
def test_quantiles(values: list[float], q: float, result: float | None) -> None:
    assert quantile(values, q) == result
