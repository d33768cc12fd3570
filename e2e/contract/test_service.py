"""What surrounds generation: health, models, version, tokens."""

import httpx
import openai
import pytest

from e2e.contract.engines import Engine


@pytest.mark.parametrize("path", ["/health", "/ping"])
def test_a_healthy_engine_answers_with_an_empty_page(http: httpx.Client, path: str) -> None:
    response = http.get(path)
    assert (response.status_code, response.content) == (200, b"")


def test_the_version_is_the_one_whose_contract_this_is(http: httpx.Client) -> None:
    assert http.get("/version").json() == {"version": "0.32.0"}


def test_the_served_model_is_listed_with_its_context(client: openai.OpenAI, engine: Engine) -> None:
    (model,) = client.models.list().data
    assert (model.id, model.object, model.owned_by) == (engine.model, "model", "vllm")
    assert model.model_dump()["max_model_len"] == engine.max_model_len


@pytest.mark.parametrize("text", ["Hello world", "  Two  blanks,\n\ttabs and 12345678 digits", "Grüße aus 東京 🙂"])
def test_tokens_go_there_and_back(http: httpx.Client, text: str) -> None:
    tokens = http.post("/tokenize", json={"prompt": text}).json()
    assert tokens["count"] == len(tokens["tokens"])
    assert tokens["token_strs"] is None
    assert http.post("/detokenize", json={"tokens": tokens["tokens"]}).json() == {"prompt": text}


def test_a_prompt_costs_as_many_tokens_as_tokenize_says(http: httpx.Client, client: openai.OpenAI, engine: Engine) -> None:
    said = http.post("/tokenize", json={"model": engine.model, "prompt": "How many tokens is this?"}).json()
    answer = client.completions.create(model=engine.model, prompt="How many tokens is this?", max_tokens=1)
    assert answer.usage
    assert answer.usage.prompt_tokens == said["count"]
    assert said["max_model_len"] == engine.max_model_len


def test_a_conversation_costs_as_many_tokens_as_tokenize_says(http: httpx.Client, client: openai.OpenAI, engine: Engine) -> None:
    said = http.post("/tokenize", json={"messages": [{"role": "user", "content": "Hello"}]}).json()
    answer = client.chat.completions.create(model=engine.model, messages=[{"role": "user", "content": "Hello"}], max_tokens=1)
    assert answer.usage
    assert answer.usage.prompt_tokens == said["count"]


def test_token_strings_come_when_asked(http: httpx.Client) -> None:
    tokens = http.post("/tokenize", json={"prompt": "Hello world", "return_token_strs": True}).json()
    assert len(tokens["token_strs"]) == tokens["count"]
