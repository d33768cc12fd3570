"""Reads a server-sent event stream that passes by. Pure and incremental; bytes are never altered, only one event may be left out.

Whole events are let through, an unfinished one waits for its end: a client acts only on whole events anyway, and so an error
event can be added at any time without running into the middle of another. However the bytes are cut on their way, the same
bytes come out.
"""

import json
import re
from dataclasses import dataclass

from warmfront_runtime.gateway.usage import Usage, usage_from

# A lone CR at the very end may be half of a CRLF: it waits.
_LINE_END = rb"(?:\r\n|\n|\r(?=[^\n]))"
_EVENT_END = re.compile(_LINE_END + _LINE_END)
_DATA_LINE = re.compile(rb"(?:\A|[\r\n])data:[ ]?([^\r\n]*)")
# In a JSON string a quote is escaped, so a quoted word before a colon can only be a key. Ten times as fast as parsing.
_CONTENT = re.compile(rb'"(?:content|text|reasoning|reasoning_content|refusal|arguments)"\s*:\s*"[^"]|"tool_calls"\s*:\s*\[\s*\{')
_ERROR = re.compile(rb'(?:\A|[\r\n])data:[ ]?\{\s*"error"\s*:')
_DONE = re.compile(rb"(?:\A|[\r\n])data:[ ]?\[DONE\]")
_LONGEST_MARK = 4  # bytes of the longest event end


@dataclass(frozen=True, kw_only=True)
class Passed:
    """What one piece of the stream gave: bytes to send on, and how many of its events carry content."""

    data: bytes
    content_events: int = 0


class SseScanner:
    """One stream.

    Args:
        leave_out_usage: leave out the usage event, the one with usage and an empty `choices`.
        longest_event_bytes: an unfinished event that grows beyond this is let through in pieces and not read.
    """

    def __init__(self, *, leave_out_usage: bool, longest_event_bytes: int = 1_048_576) -> None:
        self._leave_out_usage = leave_out_usage
        self._longest_event_bytes = longest_event_bytes
        self._held = bytearray()
        self._searched = 0
        self._inside_long_event = False
        self.usage: Usage | None = None
        self.done = False
        self.failed = False

    @property
    def between_events(self) -> bool:
        """Whether what came out so far ends with a whole event."""
        return not self._inside_long_event

    def feed(self, data: bytes) -> Passed:
        """The next bytes of the stream, cut anywhere."""
        self._held += data
        kept: list[bytes] = []
        content_events = 0
        start = 0
        for end in self._event_ends():
            event = bytes(self._held[start:end])
            start = end
            if self._take(event):
                kept.append(event)
                content_events += _has_content(event)
        del self._held[:start]
        self._searched = max(0, len(self._held) - _LONGEST_MARK)
        kept.append(self._overflow())
        return Passed(data=b"".join(kept), content_events=content_events)

    def finish(self) -> Passed:
        """The rest, when the stream has ended well: what no blank line closed."""
        rest = bytes(self._held)
        self._held.clear()
        self._searched = 0
        return Passed(data=rest, content_events=_has_content(rest)) if self._take(rest) else Passed(data=b"")

    def _event_ends(self) -> list[int]:
        if b"\r" in self._held:
            return [match.end() for match in _EVENT_END.finditer(self._held, self._searched)]
        # All engines end lines so, and a plain search is ten times as fast.
        ends = []
        at = self._held.find(b"\n\n", self._searched)
        while at >= 0:
            ends.append(at + 2)
            at = self._held.find(b"\n\n", at + 2)
        return ends

    def _take(self, event: bytes) -> bool:
        """Note what the event says; whether it goes to the client."""
        if self._inside_long_event:
            self._inside_long_event = False
            return True
        # The plain searches come first: they cost next to nothing, and nearly every event is content and only that.
        self.done = self.done or (b"[DONE]" in event and _DONE.search(event) is not None)
        self.failed = self.failed or (b'"error"' in event and _ERROR.search(event) is not None)
        return not (b'"usage"' in event and self._note_usage(event) and self._leave_out_usage)

    def _note_usage(self, event: bytes) -> bool:
        """Keep the event's usage; whether usage is all that it has."""
        try:
            chunk = json.loads(b"\n".join(_DATA_LINE.findall(event)))
        except (ValueError, RecursionError):
            return False
        usage = usage_from(chunk.get("usage")) if isinstance(chunk, dict) else None
        self.usage = usage or self.usage
        return usage is not None and chunk.get("choices") == []

    def _overflow(self) -> bytes:
        if len(self._held) <= self._longest_event_bytes:
            return b""
        # The last bytes stay: they may be the first half of the event's end.
        out = bytes(self._held[:-_LONGEST_MARK])
        del self._held[:-_LONGEST_MARK]
        self._searched = 0
        self._inside_long_event = True
        return out


def _has_content(event: bytes) -> int:
    return int(_CONTENT.search(event) is not None)
