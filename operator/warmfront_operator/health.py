"""`/metrics` and `/healthz`, in a thread of their own: they answer also while the event loop is busy, and tell when it hangs."""

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from socketserver import ThreadingMixIn
from typing import Any, Final
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import make_wsgi_app

from warmfront_operator.metrics import REGISTRY

LEAST_SILENCE_SECONDS: Final = 60.0  # a pass waits for the API server, Prometheus and the forecaster, each with its timeout
TICKS_OF_SILENCE: Final = 6


@dataclass
class Heartbeat:
    """When the tick loop was last seen alive."""

    limit_seconds: float
    monotonic: Callable[[], float] = time.monotonic
    _seen: float = field(init=False)

    def __post_init__(self) -> None:
        self._seen = self.monotonic()

    @classmethod
    def for_ticks(cls, tick_seconds: float) -> "Heartbeat":
        """One that allows for a few late ticks."""
        return cls(max(LEAST_SILENCE_SECONDS, TICKS_OF_SILENCE * tick_seconds))

    def beat(self) -> None:
        """The loop is alive."""
        self._seen = self.monotonic()

    @property
    def silent_seconds(self) -> float:
        """Seconds since the last beat."""
        return self.monotonic() - self._seen

    @property
    def alive(self) -> bool:
        """Whether the loop was seen lately."""
        return self.silent_seconds <= self.limit_seconds


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """A line per scrape and probe would bury the log."""


def application(heartbeat: Heartbeat) -> Callable[..., Iterable[bytes]]:
    """The WSGI application."""
    metrics = make_wsgi_app(REGISTRY)

    def route(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        if path == "/metrics":
            answer: Iterable[bytes] = metrics(environ, start_response)
            return answer
        status, body = _health(heartbeat) if path == "/healthz" else ("404 Not Found", "only /healthz and /metrics\n")
        start_response(status, [("Content-Type", "text/plain; charset=utf-8")])
        return [body.encode()]

    return route


def _health(heartbeat: Heartbeat) -> tuple[str, str]:
    if heartbeat.alive:
        return "200 OK", "ok\n"
    return "503 Service Unavailable", f"the tick loop has been silent for {heartbeat.silent_seconds:.0f} s\n"


def serve(heartbeat: Heartbeat, host: str, port: int) -> WSGIServer:
    """Serve until the process ends. Returns the server; its `server_port` is the real one where `port` is 0."""
    server = make_server(host, port, application(heartbeat), server_class=_Server, handler_class=_Quiet)
    threading.Thread(target=server.serve_forever, name="health", daemon=True).start()
    return server
