"""Log probabilities that are made up, but in vLLM's shape and the same at every run."""

from collections.abc import Iterator, Sequence
from typing import Any
from zlib import crc32


def chat_logprobs(pieces: Sequence[str], alternatives: int) -> dict[str, Any]:
    """The `logprobs` of chat for some tokens."""
    return {
        "content": [
            {**_entry(piece, value), "top_logprobs": [_entry(*other) for other in _ranked(piece, alternatives)]}
            for piece, value in zip(pieces, map(_logprob, pieces), strict=True)
        ]
    }


def completion_logprobs(pieces: Sequence[str], alternatives: int, *, offset: int) -> dict[str, Any]:
    """The `logprobs` of completions for some tokens; `offset` is the number of characters before them."""
    offsets = [offset + sum(map(len, pieces[:index])) for index in range(len(pieces))]
    return {
        "text_offset": offsets,
        "token_logprobs": [_logprob(piece) for piece in pieces],
        "tokens": list(pieces),
        "top_logprobs": [dict(_ranked(piece, max(1, alternatives))) for piece in pieces],
    }


def _logprob(piece: str) -> float:
    """Between -5 and 0, by the text alone."""
    return -(crc32(piece.encode()) % 5000) / 1000


def _ranked(piece: str, alternatives: int) -> Iterator[tuple[str, float]]:
    """The token itself, then others that are less likely."""
    value = _logprob(piece)
    for rank in range(alternatives):
        yield (f"{piece}{'~' * rank}", value - rank)


def _entry(token: str, value: float) -> dict[str, Any]:
    return {"token": token, "logprob": value, "bytes": list(token.encode())}
