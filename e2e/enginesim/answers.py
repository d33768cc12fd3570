"""The JSON of answers, whole and in chunks, in vLLM's field order."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from e2e.enginesim.generation import Choice, Generation
from e2e.enginesim.logprobs import chat_logprobs, completion_logprobs
from e2e.enginesim.protocol import Kind

FINGERPRINT: Final = "enginesim"
_PREFIX: Final[dict[Kind, str]] = {"chat": "chatcmpl", "completion": "cmpl"}
_OBJECT: Final[dict[Kind, tuple[str, str]]] = {
    "chat": ("chat.completion", "chat.completion.chunk"),
    "completion": ("text_completion", "text_completion"),
}


@dataclass(frozen=True, kw_only=True)
class Header:
    """What every answer and chunk of a request repeats. `alternatives` None: no log probabilities."""

    kind: Kind
    request_id: str
    created: int
    model: str
    alternatives: int | None = None

    def fields(self, *, chunk: bool) -> dict[str, Any]:
        """The leading fields."""
        return {
            "id": f"{_PREFIX[self.kind]}-{self.request_id}",
            "object": _OBJECT[self.kind][chunk],
            "created": self.created,
            "model": self.model,
        }

    def logprobs(self, pieces: Sequence[str], *, offset: int) -> dict[str, Any] | None:
        """Log probabilities of some tokens, when asked for."""
        if self.alternatives is None:
            return None
        if self.kind == "chat":
            return chat_logprobs(pieces, self.alternatives)
        return completion_logprobs(pieces, self.alternatives, offset=offset)


def usage(prompt_tokens: int, completion_tokens: int) -> dict[str, int]:
    """Token counts of a request."""
    return {
        "prompt_tokens": prompt_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
        "completion_tokens": completion_tokens,
    }


def whole(header: Header, generation: Generation) -> dict[str, Any]:
    """The answer to a request that is not streamed."""
    tokens = sum(len(choice.plan.pieces) for choice in generation.choices)
    details = {"prompt_tokens_details": None, "completion_tokens_details": None}
    return {
        **header.fields(chunk=False),
        "choices": [_whole_choice(header, index, choice) for index, choice in enumerate(generation.choices)],
        "service_tier": None,
        "system_fingerprint": FINGERPRINT,
        "usage": {**usage(generation.prompt_tokens, tokens), **details},
        "kv_transfer_params": None,
    }


def _whole_choice(header: Header, index: int, choice: Choice) -> dict[str, Any]:
    plan, text = choice.plan, choice.echo + "".join(choice.plan.pieces)
    content = {"message": {"role": "assistant", "content": text, "refusal": None}} if header.kind == "chat" else {"text": text}
    return {
        "index": index,
        **content,
        "logprobs": header.logprobs(plan.pieces, offset=len(choice.echo)),
        "finish_reason": plan.finish_reason,
        "stop_reason": plan.stop_reason,
        "token_ids": None,
    }


class ChunkWriter:
    """Writes the chunks of one streamed request as server-sent events, and keeps the place in each choice."""

    def __init__(self, header: Header, generation: Generation, *, every_usage: bool = False) -> None:
        self._header = header
        self._fields = header.fields(chunk=True)
        self._generation = generation
        self._every_usage = every_usage
        self._sent = [0] * len(generation.choices)
        self._unfinished = len(generation.choices)

    @property
    def done(self) -> bool:
        """Whether the last chunk of every choice is written."""
        return self._unfinished == 0

    def opening(self) -> bytes:
        """Chat names the role of each choice before its text; completions open with the echo, when asked for."""
        if self._header.kind == "chat":
            delta = {"delta": {"role": "assistant", "content": ""}, "logprobs": None, "finish_reason": None}
            return b"".join(self._event([{"index": index, **delta}]) for index in range(len(self._sent)))
        echoes = ((index, choice.echo) for index, choice in enumerate(self._generation.choices) if choice.echo)
        return b"".join(self._event([self._choice(index, echo, [], finished=False)]) for index, echo in echoes)

    def tokens(self, counts: dict[int, int]) -> bytes:
        """The next tokens of some choices, one chunk for each choice."""
        return b"".join(self._next(index, count) for index, count in counts.items())

    def closing(self, *, include_usage: bool) -> bytes:
        """The usage, when asked for, and the end mark."""
        end = b"data: [DONE]\n\n"
        if not include_usage:
            return end
        return self._data({**self._fields, "choices": [], "usage": self._usage(), "system_fingerprint": FINGERPRINT}) + end

    def _next(self, index: int, count: int) -> bytes:
        pieces = self._generation.choices[index].plan.pieces
        begin = self._sent[index]
        new = pieces[begin : begin + count]
        self._sent[index] = begin + len(new)
        finished = self._sent[index] == len(pieces)
        self._unfinished -= finished
        return self._event([self._choice(index, "".join(new), new, finished=finished, begin=begin)])

    def _choice(self, index: int, text: str, pieces: Sequence[str], *, finished: bool, begin: int = 0) -> dict[str, Any]:
        choice = self._generation.choices[index]
        offset = len(choice.echo) + sum(map(len, choice.plan.pieces[:begin])) if self._header.alternatives is not None else 0
        logprobs = self._header.logprobs(pieces, offset=offset) if pieces else None
        content: dict[str, Any] = {"delta": {"content": text}} if self._header.kind == "chat" else {"text": text}
        end: dict[str, Any] = {"finish_reason": None}
        if finished:
            end = {"finish_reason": choice.plan.finish_reason, "stop_reason": choice.plan.stop_reason}
        return {"index": index, **content, "logprobs": logprobs, **end, "token_ids": None}

    def _event(self, choices: list[dict[str, Any]]) -> bytes:
        more = {"usage": self._usage()} if self._every_usage else {}
        return self._data({**self._fields, "choices": choices, **more})

    def _usage(self) -> dict[str, int]:
        return usage(self._generation.prompt_tokens, sum(self._sent))

    @staticmethod
    def _data(value: dict[str, Any]) -> bytes:
        return b"data: " + json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"
