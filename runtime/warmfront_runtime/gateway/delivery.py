"""An answer on its way to the client: begun with its first bytes, so that what fails before still gets an honest status."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
from aiohttp import web

from warmfront_runtime.errors import ClientGoneError, RequestError
from warmfront_runtime.gateway.headers import to_client


class Delivery:
    """Writes one engine answer to one client.

    Args:
        request: the client's.
        upstream: the engine's answer; its body is read by the caller.
        is_stream: it is a stream of events.
        write_timeout_seconds: longest time that the client may take no byte.
    """

    def __init__(
        self, request: web.Request, upstream: aiohttp.ClientResponse, *, is_stream: bool, write_timeout_seconds: float
    ) -> None:
        self._request = request
        self._write_timeout_seconds = write_timeout_seconds
        self._is_stream = is_stream
        self.response = web.StreamResponse(status=upstream.status, reason=upstream.reason)
        headers = to_client(upstream.headers.items(), upstream.headers.get("Connection", ""))
        self.response.headers.extend(headers)
        if self._is_stream:
            self.response.headers.popall("Content-Length", None)  # one event may be left out, one may be added

    @property
    def begun(self) -> bool:
        """Whether the client has seen the status."""
        return self.response.prepared

    async def send(self, data: bytes) -> None:
        """The next bytes, not empty; waits while the client is slow.

        Raises:
            ClientGoneError: it is gone, or stalled.
        """
        async with self._patiently():
            await self._begin()
            await self.response.write(data)

    async def finish(self) -> None:
        """The answer is complete.

        Raises:
            ClientGoneError: it is gone, or stalled.
        """
        async with self._patiently():
            await self._begin()
            await self.response.write_eof()

    async def fail(self, error: RequestError, *, between_events: bool) -> None:
        """End an answer that has begun: a stream with an error event, anything else by cutting it, which is no less clear.

        Raises:
            ClientGoneError: it is gone, or stalled.
        """
        if not self._is_stream:
            self.abort()
            return
        await self.send(error.event() if between_events else b"\n\n" + error.event())
        self.response.force_close()
        await self.finish()

    async def _begin(self) -> None:
        if not self.begun:
            await self.response.prepare(self._request)

    @asynccontextmanager
    async def _patiently(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._write_timeout_seconds):
                yield
        except TimeoutError:
            self.abort()
            raise ClientGoneError(f"the client took no byte for {self._write_timeout_seconds:g} s") from None
        except ConnectionError as error:
            raise ClientGoneError("the client closed the connection") from error

    def abort(self) -> None:
        """Cut the connection, so that nothing short can pass for complete."""
        if self._request.transport is not None:
            self._request.transport.abort()
