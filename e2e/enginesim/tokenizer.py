"""A reversible tokenizer without a vocabulary: pieces of at most five ASCII characters, about four of English text per token."""

import re
from collections.abc import Iterable, Sequence

# A short run of letters or digits with the blank before it, else one character. Together they match any text.
_PIECE = re.compile(r" ?[A-Za-z0-9]{1,4}|.", re.DOTALL)

_MESSAGE_START = 1
_MESSAGE_END = 2
_SPECIAL = {_MESSAGE_START: "<|im_start|>", _MESSAGE_END: "<|im_end|>"}
_UNKNOWN = "\N{REPLACEMENT CHARACTER}"


def encode(text: str) -> list[int]:
    """Token ids of a text. An id is the piece's UTF-8 bytes behind a leading one, so that no table is needed to go back."""
    return [int.from_bytes(b"\x01" + piece.encode("utf-8", "surrogatepass")) for piece in _PIECE.findall(text)]


def piece(token: int) -> str:
    """The text of one token; ids that `encode` never gives become the replacement character."""
    if token in _SPECIAL:
        return _SPECIAL[token]
    data = token.to_bytes((token.bit_length() + 7) // 8)
    try:
        return data[1:].decode() if data[:1] == b"\x01" and len(data) > 1 else _UNKNOWN
    except UnicodeDecodeError:
        return _UNKNOWN


def decode(tokens: Iterable[int]) -> str:
    """The text of tokens: the exact inverse of `encode`."""
    return "".join(map(piece, tokens))


def encode_chat(messages: Sequence[tuple[str, str]], *, add_generation_prompt: bool = True) -> list[int]:
    """Token ids of a conversation of (role, text), in the ChatML form that many models use."""
    tokens: list[int] = []
    for role, text in messages:
        tokens += [_MESSAGE_START, *encode(f"{role}\n{text}"), _MESSAGE_END, *encode("\n")]
    if add_generation_prompt:
        tokens += [_MESSAGE_START, *encode("assistant\n")]
    return tokens
