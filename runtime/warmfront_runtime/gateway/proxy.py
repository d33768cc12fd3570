"""One request's way through the gateway: bound, read, check, send on, deliver, settle."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import aiohttp
from aiohttp import web

from warmfront_runtime.admission.body import Ask, check_model, parse, with_usage
from warmfront_runtime.admission.limits import check_encoding, check_length, too_large
from warmfront_runtime.errors import (
    BodyTimeoutError,
    ClientGoneError,
    DrainCutError,
    EngineBrokenError,
    Outcome,
    RefusedError,
    RequestError,
    RequestTimedOutError,
)
from warmfront_runtime.gateway.delivery import Delivery
from warmfront_runtime.gateway.engine import EngineClient
from warmfront_runtime.gateway.headers import to_engine
from warmfront_runtime.gateway.pod import Pod
from warmfront_runtime.gateway.sse import Passed, SseScanner
from warmfront_runtime.gateway.tally import Tally
from warmfront_runtime.gateway.usage import Usage, UsageTail

REQUEST_ID_KEY = web.RequestKey("request_id", str)

# An engine refuses a bad request within milliseconds; what it has not refused by then it has taken.
ARRIVAL_AFTER_SECONDS = 1.0

_BROKEN = "the engine broke off its answer: send the request again"


@dataclass(frozen=True, kw_only=True)
class Route:
    """A path that clients may use. `is_demand`: it costs the engine tokens, so it is counted and may stream."""

    method: str
    path: str
    is_demand: bool = False


ROUTES = (
    Route(method="POST", path="/v1/chat/completions", is_demand=True),
    Route(method="POST", path="/v1/completions", is_demand=True),
    Route(method="POST", path="/v1/embeddings", is_demand=True),
    Route(method="GET", path="/v1/models"),
    Route(method="POST", path="/tokenize"),
    Route(method="POST", path="/detokenize"),
)


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How long a client may take, seconds: to send its body; to take no byte of its answer."""

    body_seconds: float
    write_seconds: float


class Proxy:
    """Handles requests for one engine."""

    def __init__(self, *, pod: Pod, engine: EngineClient, patience: Patience) -> None:
        self._pod = pod
        self._engine = engine
        self._patience = patience

    async def handle(self, request: web.Request, route: Route) -> web.StreamResponse:
        """Answer one request.

        Raises:
            RequestError: it is answered with an error; nothing of an answer has been sent.
            ClientGoneError: there is nobody to answer.
        """
        tally = Tally(self._pod.metrics, self._pod.clock) if route.is_demand else None
        with _settled(tally):
            check_encoding(request.headers.get("Content-Encoding"))
            check_length(request.content_length, self._pod.bounds)
            with self._pod.slot():
                ask = await self._ask(request, route)
                if tally is not None:
                    tally.read_whole = True
                return await Exchange(pod=self._pod, request=request, tally=tally, patience=self._patience).run(
                    self._engine, route, ask
                )

    async def _ask(self, request: web.Request, route: Route) -> Ask | None:
        if route.method == "GET":
            return None
        body = await self._read(request)
        parsed = parse(body)
        check_model(parsed, self._pod.served_models)
        return with_usage(body, parsed) if route.is_demand else Ask(body=body)

    async def _read(self, request: web.Request) -> bytes:
        try:
            async with asyncio.timeout(self._patience.body_seconds):
                return await request.read()
        except TimeoutError:
            raise BodyTimeoutError(
                f"the request body did not arrive within {self._patience.body_seconds:g} s: send it faster"
            ) from None
        except web.HTTPRequestEntityTooLarge:
            raise too_large(self._pod.bounds) from None
        except (web.RequestPayloadError, aiohttp.ClientPayloadError) as error:
            raise RefusedError(f"the request body is broken: {error}") from error
        except ConnectionError as error:
            raise ClientGoneError("the client left before its request was complete") from error


class Exchange:
    """One admitted request, from the engine's side to the client's."""

    def __init__(self, *, pod: Pod, request: web.Request, tally: Tally | None, patience: Patience) -> None:
        self._pod = pod
        self._request = request
        self._tally = tally
        self._patience = patience
        self._delivery: Delivery | None = None
        self._scanner: SseScanner | None = None

    async def run(self, engine: EngineClient, route: Route, ask: Ask | None) -> web.StreamResponse:
        """Send it on and deliver the answer; the tally is closed unless this raises.

        Raises:
            RequestError: nothing has been delivered yet.
            ClientGoneError: the client is gone.
        """
        try:
            async with self._pod.running.deadline(self._pod.bounds.request_timeout_seconds):
                return await self._through(engine, route, ask)
        except TimeoutError as error:
            return await self._fail(self._time_is_up(), error)
        except (aiohttp.ClientError, EngineBrokenError) as error:
            return await self._fail(EngineBrokenError(_BROKEN), error)

    async def _through(self, engine: EngineClient, route: Route, ask: Ask | None) -> web.StreamResponse:
        headers = to_engine(self._request.headers, id_of_request=self._request[REQUEST_ID_KEY])
        body = ask.body if ask else None
        with _arriving(self._tally):
            async with engine.send(route.method, route.path, body=body, headers=headers) as upstream:
                outcome = outcome_of(upstream.status)
                self._note_answer(outcome)
                is_stream = outcome is Outcome.SERVED and upstream.content_type == "text/event-stream"
                delivery = self._delivery = Delivery(
                    self._request, upstream, is_stream=is_stream, write_timeout_seconds=self._patience.write_seconds
                )
                if is_stream:
                    return await self._stream(upstream, delivery, usage_is_ours=ask is not None and ask.usage_is_ours)
                return await self._whole(upstream, delivery, outcome)

    def _note_answer(self, outcome: Outcome) -> None:
        if self._tally is not None and outcome is not Outcome.REFUSED:
            self._tally.arrive()

    async def _whole(self, upstream: aiohttp.ClientResponse, delivery: Delivery, outcome: Outcome) -> web.StreamResponse:
        tail = UsageTail()
        async for piece in upstream.content.iter_any():
            tail.feed(piece)
            await delivery.send(piece)
        await delivery.finish()
        self._close(outcome, tail.usage())
        return delivery.response

    async def _stream(self, upstream: aiohttp.ClientResponse, delivery: Delivery, *, usage_is_ours: bool) -> web.StreamResponse:
        scanner = self._scanner = SseScanner(leave_out_usage=usage_is_ours)
        async for piece in upstream.content.iter_any():
            await self._pass_on(scanner.feed(piece), delivery)
        rest = scanner.finish()
        if not scanner.done:
            raise EngineBrokenError(_BROKEN)
        await self._pass_on(rest, delivery)
        await delivery.finish()
        self._close(Outcome.FAILED if scanner.failed else Outcome.SERVED, scanner.usage)
        return delivery.response

    async def _pass_on(self, passed: Passed, delivery: Delivery) -> None:
        if self._tally is not None:
            self._tally.content(passed.content_events)
        if passed.data:
            await delivery.send(passed.data)

    async def _fail(self, error: RequestError, cause: Exception) -> web.StreamResponse:
        if self._delivery is None or not self._delivery.begun:
            raise error from cause
        self._close(error.outcome, None)
        await self._delivery.fail(error, between_events=self._scanner is None or self._scanner.between_events)
        return self._delivery.response

    def _time_is_up(self) -> RequestError:
        if self._pod.running.cut:
            return DrainCutError("this pod is stopping and the time for running requests is over: send the request again")
        return RequestTimedOutError(
            f"the request took longer than {self._pod.bounds.request_timeout_seconds:g} s: ask for fewer tokens "
            "(the service's owner sets spec.gateway.limits.requestTimeoutSeconds)"
        )

    def _close(self, outcome: Outcome, usage: Usage | None) -> None:
        if self._tally is not None:
            self._tally.close(outcome, usage)


def outcome_of(status: int) -> Outcome:
    """What an engine's answer counts as; 429 and 503 are its own way to shed."""
    if status in {429, 503}:
        return Outcome.SHED
    if 400 <= status < 500:  # noqa: PLR2004
        return Outcome.REFUSED
    return Outcome.SERVED if 200 <= status < 300 else Outcome.FAILED  # noqa: PLR2004


@contextmanager
def _arriving(tally: Tally | None) -> Iterator[None]:
    """Count the arrival in a moment, if nothing has settled it by then."""
    if tally is None:
        yield
        return
    timer = asyncio.get_running_loop().call_later(ARRIVAL_AFTER_SECONDS, tally.arrive)
    try:
        yield
    finally:
        timer.cancel()


@contextmanager
def _settled(tally: Tally | None) -> Iterator[None]:
    """Whatever ends the request is counted as what it is."""
    try:
        yield
    except BaseException as error:
        if tally is not None:
            tally.close(_outcome_of_error(error, read_whole=tally.read_whole))
        raise


def _outcome_of_error(error: BaseException, *, read_whole: bool) -> Outcome:
    if isinstance(error, RequestError):
        return error.outcome
    if not isinstance(error, ClientGoneError | asyncio.CancelledError):
        return Outcome.FAILED
    return Outcome.ABANDONED if read_whole else Outcome.REFUSED
