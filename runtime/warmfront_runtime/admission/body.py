"""A request's body: parsed once, checked, and given the one thing that the gateway needs of the engine."""

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError

from warmfront_runtime.errors import ModelNotFoundError, RefusedError

_WITH_USAGE = b',"stream_options":{"include_usage":true}}'
_LAX_BOOL = TypeAdapter(bool)


@dataclass(frozen=True, kw_only=True)
class Ask:
    """What goes to the engine. `usage_is_ours`: the client did not ask for the usage chunk, so it must not see it."""

    body: bytes
    usage_is_ours: bool = False


def parse(body: bytes) -> dict[str, Any]:
    """The JSON object of a body.

    Raises:
        RefusedError: not UTF-8, not JSON, nested too deep, or not an object.
    """
    try:
        parsed = json.loads(body.decode())
    except (ValueError, RecursionError) as error:
        raise RefusedError(f"the request body is not valid JSON: {_why(error)}") from error
    if not isinstance(parsed, dict):
        raise RefusedError("the request body must be a JSON object")
    return parsed


def check_model(parsed: dict[str, Any], served: Collection[str]) -> None:
    """Refuse a model that is not served, in vLLM's words; no model at all means the only one, as for vLLM.

    Raises:
        ModelNotFoundError: another model is named.
        RefusedError: `model` is not a string.
    """
    model = parsed.get("model")
    if model is None or (isinstance(model, str) and model in served):
        return
    if not isinstance(model, str):
        raise RefusedError("model must be a string", param="model")
    raise ModelNotFoundError(
        f"The model `{model[:256]}` does not exist. This service serves: {', '.join(sorted(served))}.", param="model"
    )


def with_usage(body: bytes, parsed: dict[str, Any]) -> Ask:
    """The body for the engine: a streaming client that did not ask for usage gets it asked for.

    Where the client sent no `stream_options`, they are spliced in and every other byte stays. Where it sent some, the body is
    written anew, with continuous usage off, so that the other chunks stay as the client asked. What the engine will refuse
    (options that are no object) goes to it unchanged.
    """
    options = parsed.get("stream_options")
    if not _truth(parsed.get("stream")) or not (options is None or isinstance(options, dict)):
        return Ask(body=body)
    if options and _truth(options.get("include_usage")):
        return Ask(body=body)
    if "stream_options" not in parsed:
        return Ask(body=body.rstrip()[:-1] + _WITH_USAGE, usage_is_ours=True)
    wanted = {**(options or {}), "include_usage": True}
    if "continuous_usage_stats" in wanted:
        wanted["continuous_usage_stats"] = False
    return Ask(body=_dump({**parsed, "stream_options": wanted}), usage_is_ours=True)


def _dump(parsed: dict[str, Any]) -> bytes:
    try:
        return json.dumps(parsed).encode()
    except RecursionError as error:
        raise RefusedError(f"the request body is not valid JSON: {_why(error)}") from error


def _truth(value: object) -> bool:
    """Truth as the engine's own pydantic models read it (`"true"` and 1 are true)."""
    try:
        return value is not None and _LAX_BOOL.validate_python(value)
    except ValidationError:
        return False


def _why(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start} is not UTF-8"
    return "it is nested too deep" if isinstance(error, RecursionError) else str(error)
