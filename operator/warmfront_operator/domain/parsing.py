"""From a stored body to the model, or to what is wrong with it in the user's words."""

from collections.abc import Mapping
from typing import Any, Final

from pydantic import ValidationError

from warmfront_api.inferenceservice import InferenceService

SHOWN: Final = 3  # the first mistakes; the message has a bound


def parse_service(raw: Mapping[str, Any]) -> InferenceService:
    """The service, without its status: that is read by itself, and a broken one is simply written anew.

    Raises:
        ValidationError: the spec is not valid.
    """
    return InferenceService.model_validate({"metadata": raw["metadata"], "spec": raw.get("spec")})


def explain(error: ValidationError) -> str:
    """The fields that are wrong, and how to mend them.

    The API server refuses such a spec; it can only be there from before the schema was installed, or with the schema
    changed by hand.
    """
    found = error.errors(include_url=False, include_context=False, include_input=False)
    shown = "; ".join(f"{_path(item['loc'])}: {item['msg']}" for item in found[:SHOWN])
    more = f" (and {len(found) - SHOWN} more)" if len(found) > SHOWN else ""
    return f"the spec is not valid, so nothing is changed until it is mended: {shown}{more}"


def _path(location: tuple[int | str, ...]) -> str:
    """`spec.engine.args[2]`."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return "".join(parts).lstrip(".")
