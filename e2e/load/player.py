"""Sends planned requests at their times, whatever becomes of the earlier ones (open loop), and records each."""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncGenerator, Callable, Iterable
from dataclasses import dataclass

import aiohttp

from e2e.load.records import RequestRecord
from e2e.load.schedule import PlannedRequest

CONNECT_TIMEOUT_SECONDS = 10.0
MAX_LINE_BYTES = 1_048_576


@dataclass(frozen=True, kw_only=True)
class Target:
    """Where requests go. `url` is the service's base URL, `model` the model name that it serves."""

    url: str
    model: str
    request_timeout_seconds: float = 120.0


Record = Callable[[RequestRecord], None]


def open_session() -> aiohttp.ClientSession:
    """Return a session that makes a new connection for every request.

    kube-proxy picks a pod per *connection*: kept-alive connections would stay with the pods that were there when
    they were made, and a pod that turns warm later would get nothing. `force_close` lets it choose anew each time.
    """
    connector = aiohttp.TCPConnector(force_close=True, limit=0)
    return aiohttp.ClientSession(connector=connector, trust_env=False)


async def play(
    requests: Iterable[PlannedRequest],
    target: Target,
    *,
    record: Record,
    start_at: float | None = None,
    started: Callable[[], None] = lambda: None,
) -> None:
    """Send each request at `start_at` (unix seconds; None: now) plus its time, and hand every outcome to `record`.

    `started` is called as each one goes out. Returns once the last request has ended; each ends within the target's
    timeout, so the whole is bounded.
    """
    origin = time.time() if start_at is None else start_at
    async with open_session() as session, asyncio.TaskGroup() as tasks:
        for request in requests:
            await asyncio.sleep(max(0.0, origin + request.at_seconds - time.time()))
            started()
            tasks.create_task(_send_and_record(session, target, request, origin, record))


async def send_one(session: aiohttp.ClientSession, target: Target, request: PlannedRequest, *, origin: float) -> RequestRecord:
    """Send one streamed chat completion and return what its client saw; never raises for what the server does."""
    sent_at = time.time()
    seen = _Seen()
    error = await _outcome(session, target, request, seen)
    return RequestRecord(
        number=request.number,
        planned_at=origin + request.at_seconds,
        sent_at=sent_at,
        first_token_at=seen.first_token_at,
        ended_at=time.time(),
        status=seen.status,
        error=error,
        output_chunks=seen.chunks,
    )


@dataclass(kw_only=True)
class _Seen:
    """What has come so far."""

    status: int | None = None
    first_token_at: float | None = None
    chunks: int = 0
    done: bool = False

    def take(self, payload: str) -> str | None:
        """Take one event of the stream; returns an error text where it is one."""
        if payload == "[DONE]":
            self.done = True
            return None
        event = json.loads(payload)
        if "error" in event:
            return f"stream error: {_short(json.dumps(event['error']))}"
        if any(choice.get("delta", {}).get("content") for choice in event.get("choices", [])):
            self.chunks += 1
            self.first_token_at = self.first_token_at or time.time()
        return None


async def _send_and_record(
    session: aiohttp.ClientSession, target: Target, request: PlannedRequest, origin: float, record: Record
) -> None:
    record(await send_one(session, target, request, origin=origin))


async def _outcome(session: aiohttp.ClientSession, target: Target, request: PlannedRequest, seen: _Seen) -> str | None:
    timeout = aiohttp.ClientTimeout(total=target.request_timeout_seconds, sock_connect=CONNECT_TIMEOUT_SECONDS)
    try:
        async with session.post(f"{target.url}/v1/chat/completions", json=_body(target, request), timeout=timeout) as answer:
            seen.status = answer.status
            if answer.status != 200:
                return f"HTTP {answer.status}: {_short(await answer.text())}"
            return await _read_stream(answer, seen)
    except TimeoutError:
        return f"no end after {target.request_timeout_seconds:g} s"
    except (aiohttp.ClientError, OSError, ValueError) as error:
        return f"{type(error).__name__}: {_short(str(error))}"


async def _read_stream(answer: aiohttp.ClientResponse, seen: _Seen) -> str | None:
    async with contextlib.aclosing(_events(answer)) as events:
        async for payload in events:
            if error := seen.take(payload):
                return error
    if not seen.done:
        return "the stream ended before [DONE]"
    return None if seen.chunks else "the stream held no token"


async def _events(answer: aiohttp.ClientResponse) -> AsyncGenerator[str, None]:
    """Yield the payloads of server-sent events (one `data:` line each, as OpenAI's API sends them)."""
    async for line in answer.content:
        if line.startswith(b"data:"):
            yield line[5:].strip().decode()


def _body(target: Target, request: PlannedRequest) -> dict[str, object]:
    # The number leads, so that no two prompts share a prefix and no cache shortens the second one's prefill.
    words = " ".join([f"r{request.number}", *["word"] * (request.prompt_tokens - 1)])
    return {
        "model": target.model,
        "messages": [{"role": "user", "content": words}],
        "max_tokens": request.output_tokens,
        "ignore_eos": True,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def _short(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]}..."
