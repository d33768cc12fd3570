"""What the gateway does to a request's body: as little as it can."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warmfront_runtime.admission.body import Ask, check_model, parse, with_usage
from warmfront_runtime.errors import ModelNotFoundError, RefusedError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
OURS = {"include_usage": True}


def ask(payload: dict) -> Ask:
    body = json.dumps(payload).encode()
    return with_usage(body, parse(body))


@given(st.dictionaries(st.text(), JSON, max_size=4), st.sampled_from(["", " ", "\n\t "]))
def test_a_streaming_request_gets_usage_asked_for_and_is_otherwise_the_same(fields: dict, tail: str):
    payload = {**fields, "stream": True}
    payload.pop("stream_options", None)
    body = (json.dumps(payload) + tail).encode()
    got = with_usage(body, parse(body))
    assert got.usage_is_ours
    assert json.loads(got.body) == {**payload, "stream_options": OURS}
    assert got.body.startswith(body.rstrip()[:-1])


UNCHANGED = {
    "no stream": {},
    "stream off": {"stream": False},
    "stream is nonsense, which the engine refuses": {"stream": "maybe"},
    "usage asked for": {"stream": True, "stream_options": {"include_usage": True}},
    "usage asked for in another way": {"stream": True, "stream_options": {"include_usage": 1}},
    "options are nonsense, which the engine refuses": {"stream": True, "stream_options": "yes"},
}


@pytest.mark.parametrize("case", UNCHANGED)
def test_a_body_that_needs_nothing_is_sent_on_as_it_is(case: str):
    body = json.dumps(UNCHANGED[case], indent=1).encode()
    assert with_usage(body, parse(body)) == Ask(body=body)


ASKED = {
    "truth as the engine reads it": ({"stream": "true"}, OURS),
    "usage declined": ({"stream": True, "stream_options": {"include_usage": False}}, OURS),
    "options are null": ({"stream": True, "stream_options": None}, OURS),
    "other options stay": (
        {"stream": True, "stream_options": {"include_obfuscation": False}},
        {"include_obfuscation": False, **OURS},
    ),
    "usage on each chunk stays off, as it would have been": (
        {"stream": True, "stream_options": {"continuous_usage_stats": True}},
        {"continuous_usage_stats": False, **OURS},
    ),
}


@pytest.mark.parametrize("case", ASKED)
def test_usage_is_asked_for_beside_what_the_client_asked(case: str):
    payload, options = ASKED[case]
    got = ask(payload)
    assert got.usage_is_ours
    assert json.loads(got.body) == {**payload, "stream_options": options}


@given(st.binary(max_size=60))
def test_any_bytes_are_an_object_or_refused(data: bytes):
    try:
        parsed = parse(data)
    except RefusedError:
        with pytest.raises((ValueError, AssertionError)):
            assert isinstance(json.loads(data.decode()), dict)
    else:
        assert parsed == json.loads(data)


@pytest.mark.parametrize("depth", [10, 500, 100_000])
def test_nesting_is_taken_or_refused_and_never_a_crash(depth: int):
    body = b'{"stream": true, "stream_options": null, "a": ' + b"[" * depth + b"]" * depth + b"}"
    if depth > 10_000:
        with pytest.raises(RefusedError, match="nested too deep"):
            with_usage(body, parse(body))
    else:
        assert with_usage(body, parse(body)).usage_is_ours


def test_models():
    served = {"tiny", "adapter"}
    check_model({}, served)
    check_model({"model": "adapter"}, served)
    with pytest.raises(ModelNotFoundError, match=r"`other` does not exist\. This service serves: adapter, tiny"):
        check_model({"model": "other"}, served)
    with pytest.raises(RefusedError, match="string"):
        check_model({"model": ["tiny"]}, served)
