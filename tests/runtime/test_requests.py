"""Requests that do not stream, and every way to be turned away."""

import asyncio
import json
from collections.abc import AsyncIterator

import aiohttp
import pytest
from aiohttp import web
from yarl import URL

from tests.runtime.fakes import MODEL, Gateway, MakeGateway, die, hang, reply, stream, until
from warmfront_runtime.gateway import proxy

USAGE = {"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16}
COMPLETION = {"id": "cmpl-1", "choices": [{"text": 'he said "usage": {"prompt_tokens": 99}'}], "usage": USAGE}


async def error_of(response: aiohttp.ClientResponse) -> dict:
    """The error, in the shape that every OpenAI client reads."""
    error = (await response.json())["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["code"] == response.status
    return error


async def test_an_answer_passes_unchanged_and_its_tokens_are_counted(gateway: Gateway):
    gateway.engine.answer = reply(COMPLETION)
    raw = b'{"model":  "tiny", "prompt": "hi"}'
    async with gateway.http.post(gateway.url + "/v1/completions", data=raw) as response:
        assert await response.read() == json.dumps(COMPLETION).encode()
        assert "Transfer-Encoding" not in response.headers
    assert gateway.engine.received[0].body == raw
    assert gateway.outcomes() == {"arrivals": 1, "served": 1}
    assert gateway.value("gateway_prompt_tokens_total") == 11
    assert gateway.value("gateway_output_tokens_total") == 5
    assert gateway.value("gateway_time_to_first_token_seconds_count") == 0


async def test_embeddings_count_their_prompt_tokens_however_long_the_answer(gateway: Gateway):
    answer = {"data": [{"embedding": [0.25] * 100_000}], "usage": {"prompt_tokens": 3, "total_tokens": 3}}
    gateway.engine.answer = reply(answer)
    async with gateway.post("/v1/embeddings", {"model": MODEL, "input": "hi"}) as response:
        assert await response.json() == answer
    assert gateway.value("gateway_prompt_tokens_total") == 3
    assert gateway.value("gateway_output_tokens_total") == 0


@pytest.mark.parametrize(("method", "path"), [("GET", "/v1/models"), ("POST", "/tokenize"), ("POST", "/detokenize")])
async def test_what_costs_no_tokens_passes_and_is_no_demand(gateway: Gateway, method: str, path: str):
    gateway.engine.answer = reply({"count": 1})
    body = {"model": MODEL, "prompt": "x"} if method == "POST" else None
    async with gateway.http.request(method, gateway.url + path, json=body) as response:
        assert await response.json() == {"count": 1}
    assert gateway.engine.received[0].path == path
    assert gateway.outcomes() == {"arrivals": 0}


ADMIN_PATHS = [
    "/health",
    "/metrics",
    "/version",
    "/ping",
    "/pause",
    "/resume",
    "/sleep",
    "/wake_up",
    "/abort_requests",
    "/invocations",
    "/v1/load_lora_adapter",
    "/v1/chat/completions/",
    "/v1/chat/completions/../../metrics",
    "/v1/chat/completions%2f..%2f..%2fmetrics",
    "//metrics",
    "/",
    "/v1/chat%2Fcompletions/x",
]


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("path", ADMIN_PATHS)
async def test_nothing_else_of_the_engine_can_be_reached(gateway: Gateway, method: str, path: str):
    async with gateway.http.request(method, URL(gateway.url + path, encoded=True)) as response:
        assert response.status == 404
        assert "/v1/chat/completions" in (await error_of(response))["message"]
    assert gateway.engine.received == []
    assert gateway.outcomes() == {"arrivals": 0}


async def test_another_method_is_refused_with_the_one_that_works(gateway: Gateway):
    async with gateway.http.get(gateway.url + "/v1/completions") as response:
        assert response.status == 405
        assert response.headers["Allow"] == "POST"
        assert "POST" in (await error_of(response))["message"]


async def test_the_query_never_reaches_the_engine(gateway: Gateway):
    gateway.engine.answer = reply(COMPLETION)
    async with gateway.post("/v1/completions?x=/metrics", {"model": MODEL}) as response:
        assert response.status == 200
    assert (gateway.engine.received[0].path, gateway.engine.received[0].query) == ("/v1/completions", "")


REFUSALS = {
    "not JSON": (b"{nope", {}, 400, "not valid JSON"),
    "no body": (b"", {}, 400, "not valid JSON"),
    "not UTF-8": ('{"model": "tiny"}'.encode("utf-16"), {}, 400, "not UTF-8"),
    "nested too deep": (b'{"a":' + b"[" * 3000, {}, 400, "not valid JSON"),
    "not an object": (b"[1, 2]", {}, 400, "JSON object"),
    "a model of another type": (b'{"model": 3}', {}, 400, "must be a string"),
    "another model": (b'{"model": "gpt-9"}', {}, 404, "`gpt-9` does not exist"),
    "too long": (b'{"model": "%s"}' % (b"x" * 5000), {}, 413, "maxRequestBytes"),
    "compressed": (b"\x1f\x8b", {"Content-Encoding": "gzip"}, 415, "uncompressed"),
}


@pytest.mark.parametrize("case", REFUSALS)
async def test_a_bad_request_is_refused_by_the_gateway_and_is_no_arrival(gateway: Gateway, case: str):
    body, headers, status, words = REFUSALS[case]
    async with gateway.http.post(gateway.url + "/v1/chat/completions", data=body, headers=headers) as response:
        assert response.status == status
        assert words in (await error_of(response))["message"]
    assert gateway.engine.received == []
    assert gateway.outcomes() == {"arrivals": 0, "refused": 1}


@pytest.mark.parametrize(("size", "status"), [(4096, 200), (4097, 413)])
@pytest.mark.parametrize("chunked", [False, True])
async def test_the_byte_bound_is_exact_announced_or_not(gateway: Gateway, size: int, status: int, *, chunked: bool):
    gateway.engine.answer = reply(COMPLETION)
    start, end = b'{"model":"tiny","prompt":"', b'"}'
    body = start + b"x" * (size - len(start) - len(end)) + end

    async def pieces() -> AsyncIterator[bytes]:
        for at in range(0, len(body), 1000):
            yield body[at : at + 1000]

    async with gateway.http.post(gateway.url + "/v1/completions", data=pieces() if chunked else body) as response:
        assert response.status == status


async def test_a_body_that_does_not_come_is_given_up(make_gateway: MakeGateway):
    gateway = await make_gateway(body_seconds=0.05)

    async def never() -> AsyncIterator[bytes]:
        yield b'{"model"'
        await asyncio.Event().wait()

    async with gateway.http.post(gateway.url + "/v1/completions", data=never()) as response:
        assert response.status == 408
        assert (await error_of(response))["type"] == "RequestTimeoutError"
    assert gateway.outcomes() == {"arrivals": 0, "refused": 1}


async def test_a_client_that_leaves_before_its_request_is_whole_is_no_arrival(gateway: Gateway):
    reader, writer = await asyncio.open_connection(gateway.pod_host, gateway.pod_port)
    writer.write(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
    async with asyncio.timeout(5):
        await until(lambda: gateway.pod.slots.used)
        writer.close()
        await writer.wait_closed()
    await gateway.settled()
    del reader
    assert gateway.outcomes() == {"arrivals": 0, "refused": 1}


async def test_one_more_than_the_bound_is_shed_with_a_time_to_come_back(make_gateway: MakeGateway):
    gateway = await make_gateway(max_concurrent_requests=1)
    gateway.engine.answer = hang
    first = asyncio.create_task(gateway.chat().__aenter__())
    await gateway.engine.asked.wait()
    async with gateway.chat() as response:
        assert response.status == 503
        assert response.headers["Retry-After"] == "1"
        assert "maxConcurrentRequests" in (await error_of(response))["message"]
    assert gateway.outcomes() == {"arrivals": 1, "shed": 1}
    first.cancel()
    await gateway.settled()
    assert gateway.outcomes() == {"arrivals": 2, "shed": 1, "abandoned": 1}


ENGINE_ANSWERS = {
    "what the engine refuses is no arrival": (400, {"arrivals": 0, "refused": 1}),
    "its own full queue is demand": (503, {"arrivals": 1, "shed": 1}),
    "its own rate limit is demand": (429, {"arrivals": 1, "shed": 1}),
    "its own failure is a failure": (500, {"arrivals": 1, "failed": 1}),
}


@pytest.mark.parametrize("case", ENGINE_ANSWERS)
async def test_the_engines_errors_pass_unchanged_and_count_as_what_they_are(gateway: Gateway, case: str):
    status, outcomes = ENGINE_ANSWERS[case]
    body = {"error": {"message": "m", "type": "t", "param": None, "code": status}}
    gateway.engine.answer = reply(body, status=status)
    async with gateway.chat() as response:
        assert response.status == status
        assert await response.json() == body
    assert gateway.outcomes() == outcomes


async def test_a_request_that_the_engine_has_not_refused_in_a_moment_is_an_arrival_while_it_runs(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(proxy, "ARRIVAL_AFTER_SECONDS", 0.05)
    gateway.engine.answer = hang
    running = asyncio.create_task(gateway.chat(stream=False).__aenter__())
    await gateway.engine.asked.wait()
    assert gateway.outcomes() == {"arrivals": 0}
    async with asyncio.timeout(5):
        await until(lambda: gateway.outcomes() == {"arrivals": 1})
    running.cancel()


async def test_an_engine_that_takes_no_connection_is_a_503(gateway: Gateway):
    await gateway.engine_server.close()
    async with gateway.chat() as response:
        assert response.status == 503
        assert response.headers["Retry-After"] == "5"
        assert "no connection" in (await error_of(response))["message"]
    assert gateway.outcomes() == {"arrivals": 1, "failed": 1}


async def test_an_engine_that_dies_with_the_request_is_a_502(gateway: Gateway):
    gateway.engine.answer = die
    async with gateway.chat(stream=False) as response:
        assert response.status == 502
    assert gateway.outcomes() == {"arrivals": 1, "failed": 1}


async def test_an_answer_that_breaks_off_cannot_pass_for_complete(gateway: Gateway):
    async def half(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        await response.write(b'{"half":')
        await asyncio.sleep(0.05)
        return await die(request)

    gateway.engine.answer = half
    with pytest.raises(aiohttp.ClientError):
        async with gateway.chat(stream=False) as response:
            await response.read()
    assert gateway.outcomes() == {"arrivals": 1, "failed": 1}


@pytest.mark.parametrize("phase", ["starting", "warming"])
async def test_a_pod_that_is_not_ready_sheds_and_says_why(make_gateway: MakeGateway, phase: str):
    gateway = await make_gateway(ready=False)
    if phase == "warming":
        gateway.pod.move(gateway.pod.lifecycle.engine_up(gateway.pod.clock()))
    async with gateway.chat() as response:
        assert response.status == 503
        assert {"starting": "is starting", "warming": "is warming up"}[phase] in (await error_of(response))["message"]
    assert gateway.engine.received == []


async def test_credentials_and_steering_headers_stay_at_the_gateway(gateway: Gateway):
    gateway.engine.answer = reply(COMPLETION)
    sent = {
        "Authorization": "Bearer secret",
        "Cookie": "a=b",
        "X-Data-Parallel-Rank": "3",
        "Connection": "keep-alive, X-Odd",
        "X-Odd": "1",
        "Accept-Encoding": "gzip",
        "traceparent": "00-aa-bb-01",
    }
    async with gateway.post("/v1/completions", {"model": MODEL}, headers=sent) as response:
        assert response.status == 200
    got = {name.lower(): value for name, value in gateway.engine.received[0].headers.items()}
    assert set(got) <= {"host", "content-type", "content-length", "accept", "accept-encoding", "x-request-id", "traceparent"}
    assert got["traceparent"] == "00-aa-bb-01"
    assert got["accept-encoding"] == "identity"


async def test_hop_by_hop_headers_of_the_engine_stay_there(gateway: Gateway):
    async def answer(_: web.Request) -> web.Response:
        return web.json_response({}, headers={"Connection": "X-Hop", "X-Hop": "1", "Keep-Alive": "timeout=5", "X-Kept": "2"})

    gateway.engine.answer = answer
    async with gateway.post("/v1/completions", {"model": MODEL}) as response:
        assert response.headers["X-Kept"] == "2"
        assert response.headers["Server"] == "warmfront"
        assert not {"X-Hop", "Keep-Alive", "Connection"} & set(response.headers)


@pytest.mark.parametrize(("given", "kept"), [("abc-1.2_3", True), ("x" * 129, False), ("a b", False), (None, False)])
async def test_a_request_id_is_kept_or_made_on_errors_too_and_is_unique_at_the_engine(
    gateway: Gateway, given: str | None, *, kept: bool
):
    gateway.engine.answer = reply(COMPLETION)
    headers = {"X-Request-Id": given} if given else {}
    seen = []
    for path in ("/v1/completions", "/v1/completions", "/nowhere"):
        async with gateway.post(path, {"model": MODEL}, headers=headers) as response:
            seen.append(response.headers["X-Request-Id"])
    assert all(seen)
    assert (set(seen) == {given}) is kept
    first, second = (received.headers["X-Request-Id"] for received in gateway.engine.received)
    assert first != second, "two clients with one id could abort each other"
    assert first.startswith(seen[0])


async def test_two_requests_smuggled_as_one_are_refused(gateway: Gateway):
    raw = (
        b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"0\r\n\r\nGET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
    )
    reader, writer = await asyncio.open_connection(gateway.pod_host, gateway.pod_port)
    writer.write(raw)
    async with asyncio.timeout(5):
        answer = await reader.read()
    writer.close()
    assert answer.startswith((b"HTTP/1.0 400", b"HTTP/1.1 400"))
    assert answer.count(b"HTTP/1.") == 1
    assert gateway.engine.received == []


async def test_a_connection_serves_one_request_after_the_other_even_after_refusals(gateway: Gateway):
    gateway.engine.answer = stream(b"data: [DONE]\n\n")
    for path, status in [("/v1/completions", 200), ("/nowhere", 404), ("/v1/completions", 200)]:
        async with gateway.post(path, {"model": MODEL, "stream": True}) as response:
            assert response.status == status
            await response.read()
