"""What clients get when they ask for something wrong: vLLM's status codes and OpenAI's error shape."""

from typing import Any

import httpx
import openai
import pytest

from e2e.contract.engines import Engine

CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"
HELLO: dict[str, Any] = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 1}
ONCE: dict[str, Any] = {"prompt": "Once", "max_tokens": 1}

# path, body, status, error type, param, words of the message
REFUSED: dict[str, tuple[Any, ...]] = {
    "a model that is not served": (CHAT, {**HELLO, "model": "nope"}, 404, "NotFoundError", "model", "`nope` does not exist"),
    "a completion by such a model": (COMPLETIONS, {**ONCE, "model": "nope"}, 404, "NotFoundError", "model", "does not exist"),
    "no messages": (CHAT, {}, 400, "Bad Request", "body.messages", "Field required"),
    "an empty conversation": (CHAT, {**HELLO, "messages": []}, 400, "BadRequestError", None, "at least one message"),
    "messages that are no list": (CHAT, {**HELLO, "messages": "x"}, 400, "Bad Request", "body.messages", "valid list"),
    "a max_tokens that is no number": (
        CHAT,
        {**HELLO, "max_tokens": "a"},
        400,
        "Bad Request",
        "body.max_tokens",
        "valid integer",
    ),
    "a max_tokens of zero": (CHAT, {**HELLO, "max_tokens": 0}, 400, "BadRequestError", "max_tokens", "at least 1"),
    "a max_tokens below zero": (COMPLETIONS, {**ONCE, "max_tokens": -1}, 400, "BadRequestError", "max_tokens", "at least 1"),
    "a max_tokens above the context": (
        *(CHAT, {**HELLO, "max_tokens": 5000}, 400, "BadRequestError", "max_tokens"),
        "cannot be greater than max_model_len",
    ),
    "a prompt longer than the context": (
        *(COMPLETIONS, {**ONCE, "prompt": [7] * 3000}, 400, "BadRequestError", "input_tokens"),
        "maximum context length is 2048 tokens",
    ),
    "an empty prompt": (COMPLETIONS, {**ONCE, "prompt": ""}, 400, "BadRequestError", "prompt", "must be provided"),
    "no prompt": (COMPLETIONS, {"max_tokens": 1}, 400, "BadRequestError", "prompt", "must be provided"),
    "a prompt that is a number": (COMPLETIONS, {"prompt": 3}, 400, "Bad Request", "body.prompt", "valid list"),
    "no answer at all": (CHAT, {**HELLO, "n": 0}, 400, "BadRequestError", None, "n must be at least 1"),
    "two greedy answers": (CHAT, {**HELLO, "n": 2, "temperature": 0}, 400, "BadRequestError", None, "greedy"),
    "a negative temperature": (CHAT, {**HELLO, "temperature": -1}, 400, "BadRequestError", "temperature", "non-negative"),
    "a top_p above one": (CHAT, {**HELLO, "top_p": 3}, 400, "BadRequestError", "top_p", "(0, 1]"),
    "an empty stop string": (CHAT, {**HELLO, "stop": ""}, 400, "BadRequestError", None, "empty string"),
    "five stop strings": (CHAT, {**HELLO, "stop": list("abcde")}, 400, "Bad Request", "body.stop", "at most 4 items"),
    "stream options without a stream": (
        *(CHAT, {**HELLO, "stream_options": {"include_usage": True}}, 400, "BadRequestError", "stream_options"),
        "`stream=True`",
    ),
    "more min_tokens than max_tokens": (CHAT, {**HELLO, "min_tokens": 9}, 400, "BadRequestError", None, "min_tokens"),
    "alternatives without log probabilities": (
        *(CHAT, {**HELLO, "top_logprobs": 3}, 400, "BadRequestError", "top_logprobs"),
        "`logprobs` must be set",
    ),
    "token ids that are text": ("/detokenize", {"tokens": ["a"]}, 400, "Bad Request", "body.tokens.0", "valid integer"),
    "tokens of a model that is not served": (
        *("/tokenize", {"model": "nope", "prompt": "x"}, 404, "NotFoundError", "model"),
        "does not exist",
    ),
    "a body that is a list": (CHAT, [1], 400, "Bad Request", "body", "valid dictionary"),
}


@pytest.mark.parametrize(("path", "body", "status", "kind", "param", "words"), REFUSED.values(), ids=REFUSED)
def test_refused(http: httpx.Client, path: str, body: Any, status: int, kind: str, param: str | None, words: str) -> None:
    response = http.post(path, json=body)
    error = response.json()["error"]
    assert (response.status_code, error["code"], error["type"], error["param"]) == (status, status, kind, param)
    assert words in error["message"]


def test_a_body_that_is_not_json_is_refused(http: httpx.Client) -> None:
    response = http.post(CHAT, content=b"{bad", headers={"Content-Type": "application/json"})
    assert response.status_code == httpx.codes.BAD_REQUEST
    assert "JSON decode error" in response.json()["error"]["message"]


def test_a_body_of_another_media_type_is_refused(http: httpx.Client) -> None:
    response = http.post(CHAT, content=b"{}", headers={"Content-Type": "text/plain"})
    assert response.status_code == httpx.codes.BAD_REQUEST
    assert "Unsupported Media Type" in response.json()["error"]["message"]


def test_an_error_before_a_stream_is_an_answer_not_an_event(http: httpx.Client) -> None:
    response = http.post(CHAT, json={**HELLO, "model": "nope", "stream": True})
    assert response.status_code == httpx.codes.NOT_FOUND
    assert response.headers["content-type"] == "application/json"


def test_the_official_client_raises_its_own_errors(client: openai.OpenAI, engine: Engine) -> None:
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(model="nope", messages=[{"role": "user", "content": "x"}])
    with pytest.raises(openai.BadRequestError, match="at least 1"):
        client.completions.create(model=engine.model, prompt="x", max_tokens=0)


def test_an_unknown_path_is_not_found(http: httpx.Client) -> None:
    assert (http.get("/nothing").status_code, http.post("/v1/embeddings", json={}).status_code) == (404, 404)


def test_the_wrong_method_is_said_so(http: httpx.Client) -> None:
    response = http.get(CHAT)
    assert (response.status_code, response.headers["allow"]) == (405, "POST")
