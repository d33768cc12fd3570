"""Token counts at the end of a JSON body that streams by."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warmfront_runtime.gateway.usage import TAIL_BYTES, Usage, UsageTail

COUNTS = st.integers(0, 10**9)


def read(data: bytes, size: int = 1000) -> Usage | None:
    tail = UsageTail()
    for at in range(0, len(data), size):
        tail.feed(data[at : at + size])
    return tail.usage()


@given(text=st.text(), prompt=COUNTS, output=COUNTS, size=st.integers(1, 50), indent=st.booleans())
def test_the_responses_own_usage_is_found_whatever_the_text_says(text: str, prompt: int, output: int, size: int, *, indent: bool):
    usage = {"prompt_tokens": prompt, "completion_tokens": output}
    body = {"choices": [{"text": text + '"usage":{"prompt_tokens":5,"completion_tokens":5}'}], "usage": usage, "kind": "usage"}
    data = json.dumps(body, indent=2 if indent else None).encode()
    assert read(data, size) == Usage(prompt_tokens=prompt, output_tokens=output)


BODIES = {
    "nothing": (b"", None),
    "no usage": (b'{"error": {}}', None),
    "usage is null": (b'{"usage": null}', None),
    "usage is cut off": (b'{"usage": {"prompt_tok', None),
    "counts that are none": (b'{"usage": {"prompt_tokens": -1}}', None),
    "counts that are words": (b'{"usage": {"prompt_tokens": "3"}}', None),
    "embeddings": (b'{"usage": {"prompt_tokens": 3, "total_tokens": 3}}', Usage(prompt_tokens=3, output_tokens=0)),
    "a long body": (
        b'{"data": [' + b"1," * 200_000 + b'1], "usage": {"prompt_tokens": 3, "completion_tokens": 4}}',
        Usage(prompt_tokens=3, output_tokens=4),
    ),
    "usage too far from the end": (b'{"usage": {"prompt_tokens": 3}, "x": "' + b"x" * 3 * TAIL_BYTES + b'"}', None),
}


@pytest.mark.parametrize("case", BODIES)
def test_bodies(case: str):
    data, usage = BODIES[case]
    assert read(data) == usage
