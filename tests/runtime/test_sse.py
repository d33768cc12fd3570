"""The event scanner: whatever the cuts, the same bytes; what it reads agrees with a plain JSON reading."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.runtime.fakes import DONE, chunk, usage_chunk
from warmfront_runtime.gateway.sse import SseScanner
from warmfront_runtime.gateway.usage import Usage

TEXT = st.text(max_size=30) | st.sampled_from(
    ['"usage":{"prompt_tokens":1}', '"content":"x"', "data: [DONE]", '{"error":', "\n\n", "\r\n\r\n", "data: "]
)
ENDS = st.sampled_from(["\n", "\r\n", "\r"])
COUNTS = st.integers(0, 10**9)


@st.composite
def events(draw: st.DrawFn) -> tuple[bytes, dict]:
    """One event of an engine: its JSON, spaced one way or another, under one of the three line ends."""
    usage = st.fixed_dictionaries({"prompt_tokens": COUNTS, "completion_tokens": COUNTS})
    delta = st.fixed_dictionaries({}, optional={"content": TEXT, "reasoning_content": TEXT, "role": st.just("assistant")})
    choices = st.lists(st.fixed_dictionaries({"index": st.just(0), "delta": delta}), max_size=2)
    body = draw(st.fixed_dictionaries({"id": TEXT, "choices": choices}, optional={"usage": usage | st.none(), "model": TEXT}))
    separators = draw(st.sampled_from([(",", ":"), (", ", ": ")]))
    line = "data: " + json.dumps(body, separators=separators, ensure_ascii=draw(st.booleans()))
    return (line + draw(ENDS) * 2).encode(errors="replace"), body


STREAMS = st.lists(events(), max_size=6)


def run(scanner: SseScanner, data: bytes, cuts: list[int]) -> tuple[bytes, int]:
    out, content = b"", 0
    marks = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    for start, end in pairwise(marks):
        passed = scanner.feed(data[start:end])
        out += passed.data
        content += passed.content_events
    rest = scanner.finish()
    return out + rest.data, content + rest.content_events


@given(
    st.binary(max_size=400) | STREAMS.map(lambda es: b"".join(raw for raw, _ in es)), st.lists(st.integers(0, 10**6), max_size=12)
)
def test_no_byte_is_ever_altered(data: bytes, cuts: list[int]):
    assert run(SseScanner(leave_out_usage=False), data, cuts)[0] == data
    assert run(SseScanner(leave_out_usage=False, longest_event_bytes=8), data, cuts)[0] == data


@given(STREAMS, st.lists(st.integers(0, 10**6), max_size=12))
def test_usage_and_content_are_those_that_a_plain_reading_finds(stream: list[tuple[bytes, dict]], cuts: list[int]):
    scanner = SseScanner(leave_out_usage=True)
    out, content = run(scanner, b"".join(raw for raw, _ in stream), cuts)
    usages = [body["usage"] for _, body in stream if body.get("usage")]
    assert out == b"".join(raw for raw, body in stream if not (body.get("usage") and body["choices"] == []))
    expected = usages[-1] if usages else None
    assert scanner.usage == (
        expected and Usage(prompt_tokens=expected["prompt_tokens"], output_tokens=expected["completion_tokens"])
    )
    kept = [body for _, body in stream if not (body.get("usage") and body["choices"] == [])]
    assert content == sum(
        any(choice["delta"].get("content") or choice["delta"].get("reasoning_content") for choice in body["choices"])
        for body in kept
    )
    assert not scanner.done
    assert not scanner.failed


CONTENT = {
    "the role alone is none": (chunk(None), 0),
    "text is": (chunk("x"), 1),
    "the finish alone is none": (chunk("", finish="stop"), 0),
    "a completion's text is": (b'data: {"choices":[{"index":0,"text":"x"}]}\n\n', 1),
    "a tool call is": (b'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"f"}}]}}]}\n\n', 1),
    "an empty list of tool calls is none": (b'data: {"choices":[{"delta":{"content":"","tool_calls":[]}}]}\n\n', 0),
    "reasoning is": (b'data: {"choices":[{"delta":{"reasoning":"x"}}]}\n\n', 1),
    "a comment is none": (b': ping "content":"x"'.replace(b'"', b"") + b"\n\n", 0),
    "the end mark is none": (DONE, 0),
}


@pytest.mark.parametrize("case", CONTENT)
def test_what_counts_as_content(case: str):
    data, events_with_content = CONTENT[case]
    assert SseScanner(leave_out_usage=False).feed(data).content_events == events_with_content


def test_an_unfinished_event_waits_and_a_whole_one_does_not():
    scanner = SseScanner(leave_out_usage=False)
    assert scanner.feed(chunk("a") + b"data: {").data == chunk("a")
    assert scanner.feed(b"}\n").data == b""
    assert scanner.feed(b"\n").data == b"data: {}\n\n"


def test_an_event_without_end_is_let_through_instead_of_filling_the_memory():
    scanner = SseScanner(leave_out_usage=True, longest_event_bytes=1000)
    out = scanner.feed(b"data: " + b"x" * 5000).data
    assert len(out) >= 5000
    assert not scanner.between_events
    out += scanner.feed(b"\n").data + scanner.feed(b"\n").data
    assert out == b"data: " + b"x" * 5000 + b"\n\n"
    assert scanner.between_events
    assert scanner.feed(usage_chunk(1, 2)).data == b""


def test_the_end_mark_and_an_error_are_noticed_only_as_events_of_their_own():
    quiet, loud = SseScanner(leave_out_usage=False), SseScanner(leave_out_usage=False)
    quiet.feed(chunk('data: [DONE] {"error": 1}'))
    loud.feed(b'data: {"error": {"code": 500}}\n\n' + DONE)
    assert (quiet.done, quiet.failed) == (False, False)
    assert (loud.done, loud.failed) == (True, True)
