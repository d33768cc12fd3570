"""The warm-up: real generations through the engine, so that the first client does not pay for what is done only once."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Protocol

from aiohttp import ClientError

from warmfront_runtime.errors import WarmupError

logger = logging.getLogger(__name__)

OUTPUT_TOKENS = 16
PAUSE_SECONDS = 1.0
# The first generation may still compile; one that takes longer than this is lost, and only a new one can show warmth.
GENERATION_TIMEOUT_SECONDS = 300.0
_PROMPT = "Warm-up {number} of {total}. Describe in a few sentences how a kettle brings water to the boil, step by step."


class Engine(Protocol):
    """What the warm-up needs of the engine."""

    async def call(self, method: str, path: str, payload: Mapping[str, Any] | None = None) -> tuple[int, Any]:
        """A JSON request: status and parsed answer."""
        ...


async def warm_up(engine: Engine, *, model: str, prompts: int) -> None:
    """Run `prompts` generations, one after the other, each again until it completes. Cancel it to give up."""
    for number in range(1, prompts + 1):
        await _until_generated(engine, model=model, prompt=_PROMPT.format(number=number, total=prompts))


async def _until_generated(engine: Engine, *, model: str, prompt: str) -> None:
    said = ""
    while True:
        try:
            async with asyncio.timeout(GENERATION_TIMEOUT_SECONDS):
                return await generate(engine, model=model, prompt=prompt)
        except (WarmupError, ClientError, TimeoutError) as error:
            if repr(error) != said:  # the same failure every second would bury the rest of the log
                logger.warning("a warm-up generation failed, and is tried again each %g s: %r", PAUSE_SECONDS, error)
            said = repr(error)
            await asyncio.sleep(PAUSE_SECONDS)


async def generate(engine: Engine, *, model: str, prompt: str) -> None:
    """One generation; an embedding where the model does not generate.

    Raises:
        WarmupError: the engine refused or gave no tokens; the message has its own words.
        ClientError: no connection, or it broke off.
    """
    completion = {"model": model, "prompt": prompt, "max_tokens": OUTPUT_TOKENS, "temperature": 0}
    status, answer = await engine.call("POST", "/v1/completions", completion)
    if status in {400, 404, 405, 501}:
        embedded, _ = await engine.call("POST", "/v1/embeddings", {"model": model, "input": prompt})
        if embedded == 200:  # noqa: PLR2004
            return
    if status != 200 or not _generated(answer):  # noqa: PLR2004
        raise WarmupError(f"the engine answered {status}: {str(answer)[:300]}")


def _generated(answer: Any) -> bool:  # noqa: ANN401
    usage = answer.get("usage") if isinstance(answer, dict) else None
    return isinstance(usage, dict) and (usage.get("completion_tokens") or 0) > 0
