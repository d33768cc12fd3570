"""Token counts, as the engine states them, from a stream's usage event or from the end of a JSON body."""

import json
import re
from dataclasses import dataclass
from typing import TypeGuard

TAIL_BYTES = 65_536
_KEY = re.compile(rb'"usage"\s*:\s*')
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Tokens of one request."""

    prompt_tokens: int
    output_tokens: int


def usage_from(value: object) -> Usage | None:
    """Usage from the JSON value under `usage`; `None` where it is not one."""
    if not isinstance(value, dict):
        return None
    prompt, output = value.get("prompt_tokens"), value.get("completion_tokens") or 0  # embeddings have no output
    if not (_is_count(prompt) and _is_count(output)):
        return None
    return Usage(prompt_tokens=prompt, output_tokens=output)


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


class UsageTail:
    """Finds `usage` at the end of a JSON body that streams by, keeping at most `TAIL_BYTES` of it.

    Parsing a whole body of embeddings would hold up every other stream for a hundred milliseconds. Inside a JSON string a quote
    is escaped, so `"usage"` followed by a colon can only be a key; the last one is the response's own.
    """

    def __init__(self) -> None:
        self._tail = bytearray()

    def feed(self, data: bytes) -> None:
        """The next bytes of the body."""
        self._tail += data[-TAIL_BYTES:]
        if len(self._tail) > 2 * TAIL_BYTES:
            del self._tail[:-TAIL_BYTES]

    def usage(self) -> Usage | None:
        """What the body said; `None` where it said nothing."""
        ends = [match.end() for match in _KEY.finditer(self._tail)]
        if not ends:
            return None
        try:
            value, _ = _DECODER.raw_decode(self._tail[ends[-1] :].decode(errors="replace"))
        except (ValueError, RecursionError):
            return None
        return usage_from(value)
