"""Runs the gateway: both ports, the supervisor, and the drain."""

import asyncio
import logging
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from warmfront_api.gateway_config import GatewayConfig
from warmfront_runtime.admission.limits import Bounds
from warmfront_runtime.errors import ConfigError
from warmfront_runtime.gateway.admin import admin_app
from warmfront_runtime.gateway.app import client_app
from warmfront_runtime.gateway.engine import EngineClient, engine_session
from warmfront_runtime.gateway.pod import Pod
from warmfront_runtime.gateway.proxy import Patience, Proxy
from warmfront_runtime.metrics import GatewayMetrics
from warmfront_runtime.settings import GatewaySettings
from warmfront_runtime.warmup.supervisor import Supervisor

logger = logging.getLogger(__name__)

LINGER_SECONDS = 5.0  # how long the rest of a refused body is read, so that its sender sees the refusal
CLOSE_SECONDS = 3.0  # for what is still open when the drain is over
BACKLOG = 1024


def make_pod(settings: GatewaySettings, config: GatewayConfig) -> Pod:
    """The pod's shared state, before anything runs."""
    return Pod(
        model_name=config.model_name,
        bounds=Bounds(
            max_request_bytes=config.limits.max_request_bytes,
            max_concurrent_requests=config.limits.max_concurrent_requests,
            request_timeout_seconds=config.limits.request_timeout_seconds,
        ),
        metrics=GatewayMetrics(service=config.service, namespace=config.namespace),
        clock=time.monotonic,
        engine_hang_seconds=settings.engine_hang_seconds,
        accept_after_sigterm_seconds=settings.accept_after_sigterm_seconds,
    )


async def serve(settings: GatewaySettings, config: GatewayConfig) -> None:
    """Serve until SIGTERM or SIGINT, then drain.

    Raises:
        ConfigError: a port is taken.
    """
    pod = make_pod(settings, config)
    signals = _Signals()
    async with engine_session() as session:
        engine = EngineClient(session, config.engine_url)
        patience = Patience(body_seconds=settings.body_timeout_seconds, write_seconds=settings.write_timeout_seconds)
        proxy = Proxy(pod=pod, engine=engine, patience=patience)
        supervisor = Supervisor(pod=pod, engine=engine, model=config.model_name, warmup=config.warmup)
        async with (
            _site(admin_app(pod, engine), settings, settings.metrics_port),
            _site(client_app(pod, proxy), settings, settings.http_port),
        ):
            await _until_stopped(supervisor, signals, pod, config.drain.timeout_seconds, settings.accept_after_sigterm_seconds)


async def _until_stopped(
    supervisor: Supervisor, signals: "_Signals", pod: Pod, drain_seconds: float, accept_seconds: float
) -> None:
    watching = asyncio.create_task(supervisor.run())
    stopping = asyncio.create_task(signals.first.wait())
    try:
        await asyncio.wait({watching, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if watching.done():
            watching.result()  # a bug: end the process, its container is started again
        await drain(pod, signals.second, drain_seconds=drain_seconds, accept_seconds=accept_seconds)
    finally:
        await _cancelled(watching, stopping)


async def drain(pod: Pod, hurry: asyncio.Event, *, drain_seconds: float, accept_seconds: float) -> None:
    """Not ready at once; new requests for `accept_seconds` more; running ones for `drain_seconds` more; then they are cut.

    `hurry` ends both times.
    """
    pod.move(pod.lifecycle.drain(pod.clock()))
    logger.info("draining: %d requests in flight", pod.slots.used)
    if pod.lifecycle.was_serving:
        await _first_of(hurry, seconds=accept_seconds)
    await _first_of(hurry, pod.idle, seconds=drain_seconds)
    if pod.slots.used:
        logger.warning("%d requests are cut", pod.slots.used)
    pod.running.cut_all()
    await _first_of(pod.idle, seconds=CLOSE_SECONDS)
    pod.move(pod.lifecycle.stop(pod.clock()))
    logger.info("drained")


async def _first_of(*events: asyncio.Event, seconds: float) -> None:
    """Wait for one of `events`, at most `seconds`."""
    waiting = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await _cancelled(*waiting)


async def _cancelled(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def _site(app: web.Application, settings: GatewaySettings, port: int) -> AsyncIterator[None]:
    runner = web.AppRunner(
        app,
        access_log=None,
        handler_cancellation=True,
        auto_decompress=False,
        keepalive_timeout=settings.idle_timeout_seconds,
        lingering_time=LINGER_SECONDS,
        shutdown_timeout=CLOSE_SECONDS,
    )
    await runner.setup()
    try:
        await _listen(web.TCPSite(runner, settings.host, port, backlog=BACKLOG))
        yield
    finally:
        await runner.cleanup()


async def _listen(site: web.TCPSite) -> None:
    try:
        await site.start()
    except OSError as error:
        raise ConfigError(f"cannot listen on {site.name}: {error.strerror}: is another process there?") from error
    logger.info("listening on %s", site.name)


class _Signals:
    """The first SIGTERM (or SIGINT) drains, the second hurries."""

    def __init__(self) -> None:
        self.first = asyncio.Event()
        self.second = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._received)

    def _received(self) -> None:
        (self.second if self.first.is_set() else self.first).set()
