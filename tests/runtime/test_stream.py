"""Streams through the real applications: byte for byte, and honest about every way to end."""

import asyncio
import json
from itertools import repeat

import pytest
from aiohttp import web

from tests.runtime.fakes import DONE, Gateway, MakeGateway, chunk, die, hang, stream, usage_chunk
from warmfront_runtime.gateway.serve import drain

STREAM = [chunk(None), chunk("Hel"), chunk("lo"), chunk("", finish="stop")]


def last_event(body: bytes) -> dict:
    """The error event that closes a failed stream; it must be whole and followed by the end mark."""
    *_, error, done, rest = body.split(b"\n\n")
    assert (done, rest) == (b"data: [DONE]", b"")
    return json.loads(error.removeprefix(b"data: "))["error"]


async def test_a_stream_reaches_the_client_byte_for_byte_without_the_usage_that_only_the_gateway_asked_for(gateway: Gateway):
    gateway.engine.answer = stream(*STREAM, usage_chunk(7, 2), DONE)
    async with gateway.chat() as response:
        body = await response.read()
    assert response.status == 200
    assert response.headers["Content-Type"] == "text/event-stream; charset=utf-8"
    assert body == b"".join(STREAM) + DONE
    assert gateway.engine.received[0].json["stream_options"] == {"include_usage": True}
    assert gateway.outcomes() == {"arrivals": 1, "served": 1}
    assert gateway.value("gateway_prompt_tokens_total") == 7
    assert gateway.value("gateway_output_tokens_total") == 2
    assert gateway.value("gateway_time_to_first_token_seconds_count") == 1
    assert gateway.value("gateway_inter_token_latency_seconds_count") == 1
    assert gateway.value("gateway_request_duration_seconds_count") == 1
    assert gateway.value("gateway_requests_in_flight") == 0


async def test_a_client_that_asked_for_usage_gets_it_and_its_body_goes_to_the_engine_unchanged(gateway: Gateway):
    gateway.engine.answer = stream(*STREAM, usage_chunk(7, 2), DONE)
    raw = b'{ "stream" : true, "model":"tiny",\n "stream_options": {"include_usage": true}, "messages": []}'
    async with gateway.http.post(gateway.url + "/v1/chat/completions", data=raw) as response:
        assert await response.read() == b"".join(STREAM) + usage_chunk(7, 2) + DONE
    assert gateway.engine.received[0].body == raw
    assert gateway.value("gateway_output_tokens_total") == 2


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 1000])
async def test_wherever_the_engine_cuts_its_writes_the_same_bytes_come_out(gateway: Gateway, size: int):
    whole = b"".join([*STREAM, usage_chunk(7, 2), DONE])
    gateway.engine.answer = stream(*(whole[at : at + size] for at in range(0, len(whole), size)))
    async with gateway.chat() as response:
        assert await response.read() == b"".join(STREAM) + DONE
    assert gateway.value("gateway_output_tokens_total") == 2


async def test_an_event_is_sent_on_while_the_engine_still_works_on_the_next(gateway: Gateway):
    gateway.engine.answer = stream(chunk("first"), then=hang)
    async with asyncio.timeout(5), gateway.chat() as response:
        assert await response.content.readany() == chunk("first")
        assert gateway.value("gateway_time_to_first_token_seconds_count") == 1, "observed at once, not at the end"
        assert gateway.value("gateway_requests_in_flight") == 1


async def test_an_engine_that_dies_in_a_stream_leaves_an_error_event_and_no_half_one(gateway: Gateway):
    gateway.engine.answer = stream(chunk("Hel"), chunk("lo")[:20], then=die)
    async with gateway.chat() as response:
        body = await response.read()
    assert body.startswith(chunk("Hel") + b'data: {"error"')
    assert last_event(body)["code"] == 502
    assert gateway.outcomes() == {"arrivals": 1, "failed": 1}
    assert gateway.value("gateway_output_tokens_total") == 0


async def test_an_engine_that_dies_before_its_first_event_is_an_honest_502(gateway: Gateway):
    gateway.engine.answer = stream(then=die)
    async with gateway.chat() as response:
        assert response.status == 502
        assert (await response.json())["error"]["type"] == "BadGatewayError"
    assert gateway.outcomes() == {"arrivals": 1, "failed": 1}


async def test_a_stream_that_just_ends_is_not_taken_for_complete(gateway: Gateway):
    gateway.engine.answer = stream(chunk("Hel"), chunk("lo")[:20])
    async with gateway.chat() as response:
        body = await response.read()
    assert body.startswith(chunk("Hel") + b'data: {"error"'), "the half event is not let through"
    assert last_event(body)["code"] == 502
    assert gateway.outcomes() == {"arrivals": 1, "failed": 1}


async def test_an_end_mark_without_a_blank_line_is_one(gateway: Gateway):
    gateway.engine.answer = stream(chunk("Hel"), DONE.rstrip())
    async with gateway.chat() as response:
        assert await response.read() == chunk("Hel") + DONE.rstrip()
    assert gateway.outcomes() == {"arrivals": 1, "served": 1}


async def test_the_engines_own_error_event_passes_and_counts_as_failed(gateway: Gateway):
    error = b'data: {"error": {"message": "EngineCore died", "type": "InternalServerError", "code": 500}}\n\n'
    gateway.engine.answer = stream(chunk("Hel"), error, DONE)
    async with gateway.chat() as response:
        assert await response.read() == chunk("Hel") + error + DONE
    assert gateway.outcomes() == {"arrivals": 1, "failed": 1}


@pytest.mark.parametrize("sent", [(), (chunk("Hel"),)], ids=["before the first event", "in the stream"])
async def test_a_client_that_leaves_ends_the_engines_work_at_once(gateway: Gateway, sent: tuple[bytes, ...]):
    gateway.engine.answer = stream(*sent, then=hang)
    request = asyncio.create_task(gateway.chat().__aenter__())
    async with asyncio.timeout(5):
        await gateway.engine.asked.wait()
        if sent:
            (await request).close()
        request.cancel()
        await gateway.engine.aborted.wait()
    await gateway.settled()
    assert gateway.outcomes() == {"arrivals": 1, "abandoned": 1}


async def test_time_that_is_up_before_the_first_event_is_a_504(make_gateway: MakeGateway):
    gateway = await make_gateway(request_timeout_seconds=0.1)
    gateway.engine.answer = stream(then=hang)
    async with gateway.chat() as response:
        assert response.status == 504
        assert "requestTimeoutSeconds" in (await response.json())["error"]["message"]
    assert gateway.outcomes() == {"arrivals": 1, "failed": 1}
    async with asyncio.timeout(5):
        await gateway.engine.aborted.wait()


async def test_time_that_is_up_in_a_stream_is_an_error_event(make_gateway: MakeGateway):
    gateway = await make_gateway(request_timeout_seconds=0.1)
    gateway.engine.answer = stream(chunk("Hel"), then=hang)
    async with gateway.chat() as response:
        body = await response.read()
    assert body.startswith(chunk("Hel"))
    assert last_event(body)["code"] == 504
    assert gateway.outcomes() == {"arrivals": 1, "failed": 1}
    async with asyncio.timeout(5):
        await gateway.engine.aborted.wait()


async def test_a_client_that_does_not_read_holds_the_engine_back_and_is_cut_in_the_end(make_gateway: MakeGateway):
    gateway = await make_gateway(write_seconds=0.2)
    written = 0

    async def flood(request: web.Request) -> web.StreamResponse:
        nonlocal written
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for event in repeat(chunk("x" * 50_000)):
            await response.write(event)
            written += len(event)
        raise AssertionError

    gateway.engine.answer = flood
    async with asyncio.timeout(20), gateway.chat():
        await gateway.engine.aborted.wait()
    await gateway.settled()
    assert written < 64_000_000, "the rest waits at the engine, not in the gateway's memory"
    assert gateway.outcomes() == {"arrivals": 1, "abandoned": 1}


async def test_a_drain_whose_time_is_over_closes_streams_with_an_error_event(gateway: Gateway):
    gateway.engine.answer = stream(chunk("Hel"), then=hang)
    async with asyncio.timeout(5), gateway.chat() as response:
        first = await response.content.readany()
        await drain(gateway.pod, asyncio.Event(), drain_seconds=0.05, accept_seconds=0)
        body = first + await response.read()
    assert last_event(body)["code"] == 503
    assert "stopping" in last_event(body)["message"]
    assert gateway.outcomes() == {"arrivals": 1, "failed": 1}
