"""The inner port's application: Prometheus and the kubelet."""

from collections.abc import Awaitable, Callable

from aiohttp import web
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

from warmfront_runtime.gateway.engine import EngineClient
from warmfront_runtime.gateway.pod import Pod
from warmfront_runtime.gateway.relay import relabelled

Handler = Callable[[web.Request], Awaitable[web.Response]]


def admin_app(pod: Pod, engine: EngineClient) -> web.Application:
    """The application on the metrics port."""
    app = web.Application()
    app.router.add_get("/metrics", _metrics(pod, engine))
    app.router.add_get("/readyz", _readyz(pod))
    app.router.add_get("/livez", _livez)
    app.router.add_get("/engine/livez", _engine_livez(pod))
    return app


def _metrics(pod: Pod, engine: EngineClient) -> Handler:
    async def metrics(_: web.Request) -> web.Response:
        theirs = await engine.metrics_text()
        pod.metrics.engine_scrape_up.set(theirs is not None)
        ours = generate_latest(pod.metrics.registry)
        body = ours + relabelled(theirs or "", pod.metrics.labels).encode()
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_PLAIN_0_0_4})

    return metrics


def _readyz(pod: Pod) -> Handler:
    async def readyz(_: web.Request) -> web.Response:
        return web.Response(status=200 if pod.lifecycle.ready else 503, text=f"{pod.lifecycle.state}\n")

    return readyz


async def _livez(_: web.Request) -> web.Response:
    """Answering at all is the whole test: the event loop turns."""
    return web.Response(text="ok\n")


def _engine_livez(pod: Pod) -> Handler:
    async def engine_livez(_: web.Request) -> web.Response:
        hung = pod.watch.hung(pod.clock())
        return web.Response(status=503 if hung else 200, text="the engine hangs\n" if hung else "ok\n")

    return engine_livez
