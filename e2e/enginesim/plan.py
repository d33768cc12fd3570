"""What a request will be answered: text, length and reason of the end, all from the seed. Pure."""

import hashlib
import math
import random
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from e2e.enginesim.settings import HardwareSettings

# Each word is one token of `tokenizer`, also with the blank before it, so that counting the text again gives the same number.
_VOCABULARY = (
    "the of and to in is that for it was on as with be by at this had not are but from or have an they one you were all her she "
    "been more when who will if out so what up no some into time than only them then now like its over also two may such any me "
    "most well must even made many much new long way each here just day part life high year come work used"
)
_WORDS = tuple(_VOCABULARY.split())

FinishReason = Literal["stop", "length"]


@dataclass(frozen=True, kw_only=True)
class OutputRequest:
    """What a request says about its output. `max_tokens` None: not said; `limit_tokens`: what the context leaves, at least 1."""

    limit_tokens: int
    max_tokens: int | None = None
    min_tokens: int = 0
    ignore_eos: bool = False
    stop: tuple[str, ...] = ()
    include_stop: bool = False


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The answer to come: one piece of text per output token (empty where a token shows none), and why it ends."""

    pieces: tuple[str, ...]
    finish_reason: FinishReason
    stop_reason: str | None = None


def prompt_digest(tokens: Sequence[int]) -> bytes:
    """A digest of a prompt that is the same in every process."""
    return hashlib.blake2b(array("Q", tokens).tobytes(), digest_size=16).digest()


def plan_output(
    hardware: HardwareSettings, request: OutputRequest, *, digest: bytes, choice: int = 0, request_seed: int | None = None
) -> Plan:
    """The answer to a prompt. `choice` tells the answers of one request apart, `request_seed` is the client's own."""
    key = repr((hardware.seed, request_seed, choice)).encode() + digest
    rng = random.Random(hashlib.blake2b(key, digest_size=8).digest())  # noqa: S311 - no secret, and it must repeat
    length, ends_itself = _length(hardware, request, rng)
    pieces = _text(length - ends_itself, rng) + [""] * ends_itself  # the end-of-sequence token counts and shows nothing
    whole = Plan(pieces=tuple(pieces), finish_reason="stop" if ends_itself else "length")
    return _cut_at_stop(whole, request)


def _length(hardware: HardwareSettings, request: OutputRequest, rng: random.Random) -> tuple[int, bool]:
    """Output tokens, and whether the model ends by itself."""
    cap = min(request.max_tokens or request.limit_tokens, request.limit_tokens)
    drawn = max(1, request.min_tokens, _draw(hardware, rng))
    asked = request.max_tokens is not None and hardware.output_lengths == "request"
    if request.ignore_eos or asked or drawn > cap:
        return cap, False
    return drawn, True


def _draw(hardware: HardwareSettings, rng: random.Random) -> int:
    """A lognormal length with the set *mean*: E[exp(N(m, s^2))] = exp(m + s^2 / 2)."""
    sigma = hardware.output_sigma
    return round(rng.lognormvariate(math.log(hardware.output_mean_tokens) - sigma**2 / 2, sigma))


def _text(length: int, rng: random.Random) -> list[str]:
    words = rng.choices(_WORDS, k=length)
    return [words[0].capitalize(), *(f" {word}" for word in words[1:])] if words else []


def _cut_at_stop(plan: Plan, request: OutputRequest) -> Plan:
    """End at the token that completes the first stop string; its text ends before the string (or after it, when asked)."""
    ends = list(accumulate(map(len, plan.pieces)))
    text = "".join(plan.pieces)
    ignored = ends[request.min_tokens - 1] if 0 < request.min_tokens <= len(ends) else 0
    hits = [(at + len(stop), at, stop) for stop in request.stop if (at := text.find(stop, max(0, ignored - len(stop) + 1))) >= 0]
    if not hits:
        return plan
    stop_end, stop_start, stop = min(hits)
    count = next(index for index, end in enumerate(ends, 1) if end >= stop_end)
    keep = stop_end if request.include_stop else stop_start
    starts = [0, *ends]
    pieces = tuple(text[starts[i] : max(starts[i], min(ends[i], keep))] for i in range(count))
    return Plan(pieces=pieces, finish_reason="stop", stop_reason=stop)
