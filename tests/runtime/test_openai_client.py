"""OpenAI's own client, unchanged, through the gateway."""

import openai
import pytest

from tests.runtime.fakes import DONE, MODEL, Gateway, MakeGateway, chunk, die, reply, stream, usage_chunk

MESSAGES = [{"role": "user", "content": "hi"}]


@pytest.fixture
async def client(gateway: Gateway):
    http = openai.DefaultAsyncHttpxClient(trust_env=False)
    async with openai.AsyncOpenAI(base_url=gateway.url + "/v1", api_key="any", max_retries=0, http_client=http) as made:
        yield made


async def test_a_stream(gateway: Gateway, client: openai.AsyncOpenAI):
    gateway.engine.answer = stream(chunk(None), chunk("Hel"), chunk("lo"), chunk("", finish="stop"), usage_chunk(7, 2), DONE)
    answer = await client.chat.completions.create(model=MODEL, messages=MESSAGES, stream=True)
    chunks = [part async for part in answer]
    assert "".join(part.choices[0].delta.content or "" for part in chunks) == "Hello"
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert all(part.usage is None for part in chunks)


async def test_a_stream_with_usage(gateway: Gateway, client: openai.AsyncOpenAI):
    gateway.engine.answer = stream(chunk("Hi"), usage_chunk(7, 2), DONE)
    options = {"include_usage": True}
    answer = await client.chat.completions.create(model=MODEL, messages=MESSAGES, stream=True, stream_options=options)
    chunks = [part async for part in answer]
    assert chunks[-1].usage.completion_tokens == 2


async def test_a_whole_answer(gateway: Gateway, client: openai.AsyncOpenAI):
    message = {"role": "assistant", "content": "Hello"}
    body = {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": MODEL,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
    }
    gateway.engine.answer = reply(body)
    answer = await client.chat.completions.create(model=MODEL, messages=MESSAGES)
    assert answer.choices[0].message.content == "Hello"


async def test_an_engine_that_dies_in_a_stream_is_an_exception_and_no_short_answer(gateway: Gateway, client: openai.AsyncOpenAI):
    gateway.engine.answer = stream(chunk("Hel"), then=die)
    answer = await client.chat.completions.create(model=MODEL, messages=MESSAGES, stream=True)
    got = []
    with pytest.raises(openai.APIError, match="broke off"):
        got.extend([part async for part in answer])


async def test_refusals_are_the_clients_own_exceptions(gateway: Gateway, client: openai.AsyncOpenAI):
    with pytest.raises(openai.NotFoundError, match="`other` does not exist"):
        await client.chat.completions.create(model="other", messages=MESSAGES)
    with pytest.raises(openai.NotFoundError, match="not served here"):
        await client.images.generate(prompt="x")
    with pytest.raises(openai.APIStatusError, match="maxRequestBytes"):
        await client.completions.create(model=MODEL, prompt="x" * 10_000)
    assert gateway.engine.received == []


async def test_what_is_shed_is_tried_again_by_the_client_itself(make_gateway: MakeGateway):
    gateway = await make_gateway(ready=False)
    http = openai.DefaultAsyncHttpxClient(trust_env=False)
    async with openai.AsyncOpenAI(base_url=gateway.url + "/v1", api_key="any", max_retries=0, http_client=http) as client:
        with pytest.raises(openai.InternalServerError) as caught:
            await client.completions.create(model=MODEL, prompt="x")
    assert caught.value.status_code == 503
    assert client._should_retry(caught.value.response)
