"""Fixtures: the gateway's real applications before a fake engine, all on loopback."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Self, TypeVar

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.runtime.fakes import MODEL, FakeEngine, Gateway, MakeGateway
from warmfront_runtime.admission.limits import Bounds
from warmfront_runtime.gateway.admin import admin_app
from warmfront_runtime.gateway.app import client_app
from warmfront_runtime.gateway.engine import EngineClient, engine_session
from warmfront_runtime.gateway.pod import Pod
from warmfront_runtime.gateway.proxy import Patience, Proxy
from warmfront_runtime.metrics import GatewayMetrics

T = TypeVar("T")


@pytest.fixture
async def make_gateway() -> AsyncIterator[MakeGateway]:
    """Make gateways that are ready (unless `ready=False`); all is closed at the end."""
    async with _Closing() as closing:

        async def make(
            *,
            ready: bool = True,
            max_request_bytes: int = 4096,
            max_concurrent_requests: int = 8,
            request_timeout_seconds: float = 30,
            body_seconds: float = 30,
            write_seconds: float = 30,
            accept_after_sigterm_seconds: float = 5,
            clock: Callable[[], float] | None = None,
        ) -> Gateway:
            pod = Pod(
                model_name=MODEL,
                bounds=Bounds(
                    max_request_bytes=max_request_bytes,
                    max_concurrent_requests=max_concurrent_requests,
                    request_timeout_seconds=request_timeout_seconds,
                ),
                metrics=GatewayMetrics(service="chat", namespace="ml"),
                clock=clock or asyncio.get_running_loop().time,
                engine_hang_seconds=60,
                accept_after_sigterm_seconds=accept_after_sigterm_seconds,
            )
            if ready:
                now = pod.clock()
                pod.move(pod.lifecycle.engine_up(now).warmed(now))
            engine = FakeEngine()
            engine_server = await closing.server(engine.app())
            client = EngineClient(await closing.enter(engine_session()), str(engine_server.make_url("")))
            patience = Patience(body_seconds=body_seconds, write_seconds=write_seconds)
            front = await closing.server(client_app(pod, Proxy(pod=pod, engine=client, patience=patience)))
            admin = await closing.server(admin_app(pod, client))
            return Gateway(
                pod=pod,
                http=await closing.enter(aiohttp.ClientSession(auto_decompress=False)),
                url=str(front.make_url("")).rstrip("/"),
                admin_url=str(admin.make_url("")).rstrip("/"),
                engine=engine,
                engine_client=client,
                engine_server=engine_server,
            )

        yield make


@pytest.fixture
async def gateway(make_gateway: MakeGateway) -> Gateway:
    return await make_gateway()


class _Closing:
    """Closes what it opened, last first; servers do not wait for requests that a test left hanging."""

    async def __aenter__(self) -> Self:
        self._stack = AsyncExitStack()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def server(self, app: web.Application) -> TestServer:
        server = TestServer(app)
        await server.start_server(shutdown_timeout=0.05, auto_decompress=False, lingering_time=1.0)
        self._stack.push_async_callback(server.close)
        return server

    async def enter(self, context: AbstractAsyncContextManager[T]) -> T:
        return await self._stack.enter_async_context(context)
