"""The HTTP server: routes, parsing, streaming, errors."""

import asyncio
import json
import time
import uuid
from collections.abc import AsyncIterator, Callable
from typing import Any, Final, TypeVar

from aiohttp import web
from pydantic import BaseModel, ValidationError

from e2e.enginesim import tokenizer
from e2e.enginesim.answers import ChunkWriter, Header, whole
from e2e.enginesim.checks import check_chat, check_completion, check_model, check_sampling
from e2e.enginesim.driver import Delivery, EngineDriver
from e2e.enginesim.errors import ApiError, MalformedRequestError
from e2e.enginesim.generation import Generation, plan_chat, plan_completion
from e2e.enginesim.metrics import EngineMetrics
from e2e.enginesim.protocol import (
    ChatRequest,
    CompletionRequest,
    DetokenizeRequest,
    GenerationRequest,
    Kind,
    StreamOptions,
    TokenizeRequest,
)
from e2e.enginesim.settings import HardwareSettings, ServerFlags, engine_limits
from warmfront_forecaster.capacity.token_engine import TokenEngine

VERSION: Final = "0.32.0"
LARGEST_BODY_BYTES: Final = 64 * 2**20

Request = TypeVar("Request", bound=BaseModel)


class Server:
    """One simulated vLLM server."""

    def __init__(self, flags: ServerFlags, hardware: HardwareSettings, *, clock: Callable[[], float]) -> None:
        """`clock` is monotonic, in seconds.

        Raises:
            ConfigurationError: The settings do not make an engine.
        """
        limits = engine_limits(flags, hardware)
        self._flags = flags
        self._hardware = hardware
        self._created = int(time.time())
        self._metrics = EngineMetrics(model_name=flags.names[0], limits=limits, max_model_len=flags.max_model_len)
        self._driver = EngineDriver(
            engine=TokenEngine(limits=limits, model=hardware.step_model),
            metrics=self._metrics,
            clock=clock,
            tick_seconds=hardware.tick_seconds,
            max_queued=flags.max_num_queued_reqs,
        )

    def application(self) -> web.Application:
        """The routes."""
        app = web.Application(middlewares=[_error_answers], client_max_size=LARGEST_BODY_BYTES)
        app.cleanup_ctx.append(self._run_engine)
        app.add_routes(
            [
                web.get("/health", _empty),
                web.get("/ping", _empty),
                web.post("/ping", _empty),
                web.get("/version", self._version),
                web.get("/v1/models", self._models),
                web.get("/metrics", self._metrics_page),
                web.post("/v1/chat/completions", self._chat),
                web.post("/v1/completions", self._completions),
                web.post("/tokenize", self._tokenize),
                web.post("/detokenize", self._detokenize),
            ]
        )
        return app

    async def _run_engine(self, _app: web.Application) -> AsyncIterator[None]:
        task = asyncio.create_task(self._driver.run())
        task.add_done_callback(_stop_when_broken)
        yield
        task.cancel()

    async def _version(self, _request: web.Request) -> web.Response:
        return _json({"version": VERSION})

    async def _models(self, _request: web.Request) -> web.Response:
        more = {"owned_by": "vllm", "root": self._flags.model, "parent": None, "max_model_len": self._flags.max_model_len}
        models = [{"id": name, "object": "model", "created": self._created, **more} for name in self._flags.names]
        return _json({"object": "list", "data": models})

    async def _metrics_page(self, _request: web.Request) -> web.Response:
        return web.Response(body=self._metrics.render(), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})

    async def _tokenize(self, request: web.Request) -> web.Response:
        asked = await _parse(request, TokenizeRequest)
        check_model(asked.model, self._flags.names)
        if asked.messages is not None:
            messages = [(message.role, message.text) for message in asked.messages]
            tokens = tokenizer.encode_chat(messages, add_generation_prompt=asked.add_generation_prompt)
        elif asked.prompt is not None:
            tokens = tokenizer.encode(asked.prompt)
        else:
            raise MalformedRequestError("1 validation error:\n  'prompt' or 'messages': Field required", param="body.prompt")
        strings = [tokenizer.piece(token) for token in tokens] if asked.return_token_strs else None
        return _json({"count": len(tokens), "max_model_len": self._flags.max_model_len, "tokens": tokens, "token_strs": strings})

    async def _detokenize(self, request: web.Request) -> web.Response:
        asked = await _parse(request, DetokenizeRequest)
        check_model(asked.model, self._flags.names)
        return _json({"prompt": tokenizer.decode(asked.tokens)})

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        asked = await _parse(request, ChatRequest)
        check_model(asked.model, self._flags.names)
        check_chat(asked)
        check_sampling(asked, max_model_len=self._flags.max_model_len)
        generation = plan_chat(asked, self._hardware, max_model_len=self._flags.max_model_len)
        return await self._generate(request, asked, generation, "chat")

    async def _completions(self, request: web.Request) -> web.StreamResponse:
        asked = await _parse(request, CompletionRequest)
        check_model(asked.model, self._flags.names)
        check_completion(asked)
        check_sampling(asked, max_model_len=self._flags.max_model_len)
        generation = plan_completion(asked, self._hardware, max_model_len=self._flags.max_model_len)
        return await self._generate(request, asked, generation, "completion")

    async def _generate(
        self, request: web.Request, asked: GenerationRequest, generation: Generation, kind: Kind
    ) -> web.StreamResponse:
        header = Header(
            kind=kind,
            request_id=request.headers.get("X-Request-Id") or uuid.uuid4().hex[:16],
            created=int(time.time()),
            model=asked.model or self._flags.names[0],
            alternatives=asked.alternatives,
        )
        delivery = self._driver.submit(generation.sequences, choices=asked.n)
        try:
            if asked.stream:
                return await _stream(request, delivery, header, generation, asked.stream_options or StreamOptions())
            await _all_tokens(delivery, generation)
            return _json(whole(header, generation))
        finally:
            # Whatever ends the handler, a client that went away most of all, ends its sequences; finished ones are not there.
            self._driver.abort(generation.request_ids)


async def _all_tokens(delivery: Delivery, generation: Generation) -> None:
    missing = sum(len(choice.plan.pieces) for choice in generation.choices)
    async for counts in delivery.batches():
        missing -= sum(counts.values())
        if missing == 0:
            return


async def _stream(
    request: web.Request, delivery: Delivery, header: Header, generation: Generation, options: StreamOptions
) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
    await response.prepare(request)
    writer = ChunkWriter(header, generation, every_usage=options.continuous_usage_stats)
    opening: bytes = writer.opening()
    async for counts in delivery.batches():
        await response.write(opening + writer.tokens(counts))
        opening = b""
        if writer.done:
            break
    await response.write(writer.closing(include_usage=options.include_usage))
    await response.write_eof()
    return response


async def _empty(_request: web.Request) -> web.Response:
    return web.Response()


@web.middleware
async def _error_answers(request: web.Request, handler: Callable[[web.Request], Any]) -> web.StreamResponse:
    """Give vLLM's own errors in OpenAI's shape; those of its HTTP framework as `detail`."""
    try:
        response: web.StreamResponse = await handler(request)
    except ApiError as error:
        return _json(error.body(), status=error.status)
    except web.HTTPRequestEntityTooLarge as error:
        return _json(MalformedRequestError(error.text or error.reason).body(), status=error.status)
    except web.HTTPException as error:
        allow = {"Allow": error.headers["Allow"]} if "Allow" in error.headers else {}
        return _json({"detail": error.reason}, status=error.status, headers=allow)
    return response


async def _parse(request: web.Request, model: type[Request]) -> Request:
    """The request's body.

    Raises:
        MalformedRequestError: It is not JSON, or not of this shape.
    """
    if request.content_type != "application/json":
        raise MalformedRequestError("1 validation error:\n  Unsupported Media Type: Only 'application/json' is allowed")
    try:
        return model.model_validate(json.loads(await request.read()))
    except ValidationError as error:
        raise _malformed(error) from error
    except ValueError as error:  # not JSON, or not UTF-8
        raise MalformedRequestError(f"1 validation error:\n  JSON decode error: {error}", param="body") from error


def _malformed(error: ValidationError) -> ApiError:
    details = [(_field(detail["loc"]), detail["msg"]) for detail in error.errors(include_input=False, include_url=False)]
    lines = "\n".join(f"  {where}: {message}" for where, message in details[:10])
    return MalformedRequestError(f"{len(details)} validation error{'s'[: len(details) > 1]}:\n{lines}", param=details[0][0])


def _field(location: tuple[int | str, ...]) -> str:
    """`body.field.index`, without pydantic's names for the branches of a union."""
    parts = [part for part in location if isinstance(part, int) or not (part in ("str", "int") or "[" in part)]
    return ".".join(map(str, ["body", *parts]))


def _json(value: dict[str, Any], *, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    body = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    return web.Response(body=body, status=status, content_type="application/json", headers=headers)


def _stop_when_broken(task: asyncio.Task[None]) -> None:
    """A fault of the engine must end the process: a server whose engine is dead would leave every request hanging."""
    if not task.cancelled() and task.exception() is not None:
        raise SystemExit(1) from task.exception()
