"""The gateway's way to the engine: one session on loopback, fixed paths, no redirects, no retries."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from warmfront_runtime.errors import EngineUnreachableError
from warmfront_runtime.gateway.health import Probe

# Below the 5 s after which vLLM's server closes an idle connection, or a request could be sent into a closing one.
KEEPALIVE_SECONDS = 3.0
CONNECT_TIMEOUT_SECONDS = 5.0
HEALTH_TIMEOUT_SECONDS = 5.0
METRICS_TIMEOUT_SECONDS = 3.0  # Prometheus gives the whole scrape ten
METRICS_MAX_BYTES = 8_388_608

UNREACHABLE = "the engine takes no connection: it is starting or has stopped; try again after the time in Retry-After"


@asynccontextmanager
async def engine_session() -> AsyncIterator[aiohttp.ClientSession]:
    """A session that adds nothing of its own to a request and bounds nothing but the connection's making."""
    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEPALIVE_SECONDS)
    async with aiohttp.ClientSession(
        connector=connector,
        auto_decompress=False,
        cookie_jar=aiohttp.DummyCookieJar(),
        skip_auto_headers=("User-Agent", "Content-Type"),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_SECONDS),
        trust_env=False,
    ) as session:
        yield session


class EngineClient:
    """Calls one engine. The session is the caller's, who closes it."""

    def __init__(self, session: aiohttp.ClientSession, base_url: str) -> None:
        self._session = session
        self._base_url = base_url.rstrip("/")

    @asynccontextmanager
    async def send(
        self, method: str, path: str, *, body: bytes | None, headers: Mapping[str, str]
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """One request; the answer's body is read by the caller. Leaving early closes the connection, which aborts it there.

        Raises:
            EngineUnreachableError: no connection.
            aiohttp.ClientError: the engine broke off.
        """
        try:
            response = await self._session.request(
                method, self._base_url + path, data=body, headers=headers, allow_redirects=False
            )
        except (aiohttp.ClientConnectorError, aiohttp.ServerTimeoutError) as error:
            raise EngineUnreachableError(UNREACHABLE) from error
        try:
            yield response
        finally:
            response.release()  # an unread rest closes the connection

    async def health(self) -> Probe:
        """One health request."""
        try:
            async with asyncio.timeout(HEALTH_TIMEOUT_SECONDS), self._session.get(self._base_url + "/health") as response:
                return Probe.HEALTHY if response.ok else Probe.UNHEALTHY
        except TimeoutError:
            return Probe.UNANSWERED
        except aiohttp.ClientError:
            return Probe.UNREACHABLE

    async def model_names(self) -> frozenset[str]:
        """Names that the engine serves: its model and its adapters; empty where it does not say."""
        status, answer = await self.call("GET", "/v1/models")
        if not 200 <= status < 300 or not isinstance(answer, dict):  # noqa: PLR2004
            return frozenset()
        entries = answer.get("data")
        names = [entry.get("id") for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
        return frozenset(name for name in names if isinstance(name, str))

    async def call(self, method: str, path: str, payload: Mapping[str, Any] | None = None) -> tuple[int, Any]:
        """A JSON request of our own: status and parsed answer (`None` where it is no JSON).

        Raises:
            aiohttp.ClientError: no connection, or it broke off.
        """
        body = None if payload is None else json.dumps(payload).encode()
        headers = {} if body is None else {"Content-Type": "application/json"}
        async with self._session.request(method, self._base_url + path, data=body, headers=headers) as response:
            try:
                return response.status, await response.json(content_type=None)
            except ValueError:
                return response.status, None

    async def metrics_text(self) -> str | None:
        """The engine's metrics page; `None` where it cannot be had in time or is too long."""
        headers = {"Accept": "text/plain;version=0.0.4", "Accept-Encoding": "identity"}
        try:
            async with (
                asyncio.timeout(METRICS_TIMEOUT_SECONDS),
                self._session.get(self._base_url + "/metrics", headers=headers) as response,
            ):
                return await _bounded_text(response) if response.ok else None
        except (TimeoutError, aiohttp.ClientError):
            return None


async def _bounded_text(response: aiohttp.ClientResponse) -> str | None:
    body = bytearray()
    async for piece in response.content.iter_any():
        body += piece
        if len(body) > METRICS_MAX_BYTES:
            return None
    return body.decode(errors="replace")
