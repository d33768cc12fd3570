"""How a pod stops."""

import asyncio

import pytest
from aiohttp import web

from tests.runtime.fakes import DONE, MODEL, Gateway, MakeGateway, chunk, hang, reply, stream
from warmfront_runtime.gateway.lifecycle import State
from warmfront_runtime.gateway.serve import drain


async def readyz(gateway: Gateway) -> int:
    async with gateway.http.get(gateway.admin_url + "/readyz") as response:
        return response.status


async def test_a_draining_pod_is_not_ready_yet_serves_until_the_endpoints_know_and_then_refuses(make_gateway: MakeGateway):
    now = 0.0
    gateway = await make_gateway(clock=lambda: now)
    gateway.engine.answer = reply({"choices": []})
    hurry = asyncio.Event()
    draining = asyncio.create_task(drain(gateway.pod, hurry, drain_seconds=60, accept_seconds=60))
    await asyncio.sleep(0)
    assert await readyz(gateway) == 503
    assert gateway.value("gateway_draining") == 1
    now = 4.9
    async with gateway.post("/v1/completions", {"model": MODEL}) as response:
        assert response.status == 200
        assert response.headers["Connection"] == "close"
    now = 5.0
    async with gateway.post("/v1/completions", {"model": MODEL}) as response:
        assert response.status == 503
        assert response.headers["Connection"] == "close"
        assert response.headers["Retry-After"] == "1"
        assert "stopping" in (await response.json())["error"]["message"]
    assert gateway.outcomes() == {"arrivals": 2, "served": 1, "shed": 1}
    hurry.set()
    await draining
    assert gateway.pod.lifecycle.state is State.STOPPED


async def test_a_running_stream_ends_in_its_own_time_and_the_drain_with_it(gateway: Gateway):
    go_on = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(chunk("Hel"))
        await go_on.wait()
        await response.write(chunk("lo") + DONE)
        return response

    gateway.engine.answer = answer
    async with asyncio.timeout(5), gateway.chat() as response:
        first = await response.content.readany()
        draining = asyncio.create_task(drain(gateway.pod, asyncio.Event(), drain_seconds=60, accept_seconds=0))
        await asyncio.sleep(0.02)
        assert not draining.done()
        go_on.set()
        assert first + await response.read() == chunk("Hel") + chunk("lo") + DONE
        await draining
    assert gateway.outcomes() == {"arrivals": 1, "served": 1}


async def test_a_second_signal_ends_what_runs(gateway: Gateway):
    gateway.engine.answer = stream(chunk("Hel"), then=hang)
    hurry = asyncio.Event()
    async with asyncio.timeout(5), gateway.chat() as response:
        await response.content.readany()
        draining = asyncio.create_task(drain(gateway.pod, hurry, drain_seconds=60, accept_seconds=60))
        await asyncio.sleep(0.02)
        hurry.set()
        assert b'"code": 503' in await response.read()
        await draining
    assert gateway.engine.aborted.is_set()


async def test_a_request_that_waits_for_its_first_byte_when_time_is_over_may_be_sent_again_elsewhere(gateway: Gateway):
    gateway.engine.answer = hang
    running = asyncio.create_task(gateway.chat().__aenter__())
    await gateway.engine.asked.wait()
    await drain(gateway.pod, asyncio.Event(), drain_seconds=0.02, accept_seconds=0)
    response = await running
    assert response.status == 503
    assert response.headers["Retry-After"] == "1"
    response.close()


@pytest.mark.parametrize("seconds", [0, 60])
async def test_an_idle_pod_that_never_served_stops_at_once(make_gateway: MakeGateway, seconds: float):
    gateway = await make_gateway(ready=False)
    async with asyncio.timeout(2):
        await drain(gateway.pod, asyncio.Event(), drain_seconds=60, accept_seconds=seconds)
    assert gateway.pod.lifecycle.state is State.STOPPED
