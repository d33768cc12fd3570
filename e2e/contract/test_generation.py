"""What clients get when they ask for text, whole and streamed, through the official client."""

import json
from typing import Any

import httpx
import openai
import pytest
from openai.types.chat import ChatCompletionChunk

from e2e.contract.engines import Engine

QUESTION: Any = [{"role": "user", "content": "Name three rivers of Europe."}]
# Greedy and without an end of its own: the same text each time, as long as asked.
FIXED: Any = {"temperature": 0, "extra_body": {"ignore_eos": True}}


def chat_text(client: openai.OpenAI, engine: Engine, **more: Any) -> str:
    answer = client.chat.completions.create(model=engine.model, messages=QUESTION, **more)
    return answer.choices[0].message.content or ""


def chat_stream(client: openai.OpenAI, engine: Engine, **more: Any) -> list[ChatCompletionChunk]:
    return list(client.chat.completions.create(model=engine.model, messages=QUESTION, stream=True, **more))


def joined(chunks: list[ChatCompletionChunk], index: int = 0) -> str:
    return "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices if choice.index == index)


def test_a_chat_answer_has_text_a_reason_and_exact_counts(client: openai.OpenAI, engine: Engine) -> None:
    answer = client.chat.completions.create(model=engine.model, messages=QUESTION, max_tokens=7, **FIXED)
    (choice,) = answer.choices
    assert (answer.object, answer.model) == ("chat.completion", engine.model)
    assert answer.id.startswith("chatcmpl-")
    assert (choice.index, choice.message.role, choice.finish_reason) == (0, "assistant", "length")
    assert choice.message.content
    assert answer.usage
    assert answer.usage.completion_tokens == 7
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + 7


def test_a_chat_stream_opens_with_the_role_and_ends_with_reason_and_usage(client: openai.OpenAI, engine: Engine) -> None:
    chunks = chat_stream(client, engine, max_tokens=7, stream_options={"include_usage": True}, **FIXED)
    opening, *middle, last_text, last = chunks
    assert {chunk.id for chunk in chunks} == {opening.id}
    assert {chunk.object for chunk in chunks} == {"chat.completion.chunk"}
    assert (opening.choices[0].delta.role, opening.choices[0].delta.content) == ("assistant", "")
    assert all(chunk.choices[0].finish_reason is None for chunk in middle)
    assert last_text.choices[0].finish_reason == "length"
    assert all(chunk.usage is None for chunk in chunks[:-1])
    assert last.choices == []
    assert last.usage
    assert last.usage.completion_tokens == 7


def test_a_stream_joins_to_the_whole_answer(client: openai.OpenAI, engine: Engine) -> None:
    assert joined(chat_stream(client, engine, max_tokens=12, **FIXED)) == chat_text(client, engine, max_tokens=12, **FIXED)


def test_a_stream_without_the_option_carries_no_usage(client: openai.OpenAI, engine: Engine) -> None:
    chunks = chat_stream(client, engine, max_tokens=3, **FIXED)
    assert all(chunk.choices and chunk.usage is None for chunk in chunks)


def test_continuous_usage_counts_the_tokens_so_far(client: openai.OpenAI, engine: Engine) -> None:
    options = {"include_usage": True, "continuous_usage_stats": True}
    chunks = chat_stream(client, engine, max_tokens=5, stream_options=options, **FIXED)
    counts = [chunk.usage.completion_tokens for chunk in chunks if chunk.usage]
    assert len(counts) == len(chunks)
    assert (counts[0], counts[-1]) == (0, 5)
    assert counts == sorted(counts)


def test_the_events_of_a_stream_are_lines_of_data_that_end_with_done(http: httpx.Client, engine: Engine) -> None:
    body = {"model": engine.model, "messages": QUESTION, "max_tokens": 3, "stream": True}
    with http.stream("POST", "/v1/chat/completions", json=body) as response:
        raw = response.read().decode()
    assert response.headers["content-type"].startswith("text/event-stream")
    events = raw.split("\n\n")
    assert events[-2:] == ["data: [DONE]", ""]
    parsed = [json.loads(event.removeprefix("data: ")) for event in events[:-2]]
    assert [event["choices"][0]["index"] for event in parsed] == [0] * len(parsed)
    assert "stop_reason" in parsed[-1]["choices"][0]


def test_a_completion_has_text_a_reason_and_exact_counts(client: openai.OpenAI, engine: Engine) -> None:
    answer = client.completions.create(model=engine.model, prompt="Once upon a time", max_tokens=5, **FIXED)
    (choice,) = answer.choices
    assert (answer.object, choice.finish_reason) == ("text_completion", "length")
    assert answer.id.startswith("cmpl-")
    assert choice.text
    assert answer.usage
    assert answer.usage.completion_tokens == 5


def test_a_completion_without_max_tokens_has_sixteen(client: openai.OpenAI, engine: Engine) -> None:
    answer = client.completions.create(model=engine.model, prompt="Once upon a time", **FIXED)
    assert answer.usage
    assert answer.usage.completion_tokens == 16


def test_a_completion_stream_joins_to_the_whole_answer(client: openai.OpenAI, engine: Engine) -> None:
    asked: Any = {"model": engine.model, "prompt": "Once upon a time", "max_tokens": 8, **FIXED}
    chunks = list(client.completions.create(stream=True, stream_options={"include_usage": True}, **asked))
    text = "".join(choice.text for chunk in chunks for choice in chunk.choices)
    assert text == client.completions.create(**asked).choices[0].text
    assert chunks[-2].choices[0].finish_reason == "length"
    assert chunks[-1].usage
    assert chunks[-1].usage.completion_tokens == 8


def test_a_stop_string_ends_the_text_before_it(client: openai.OpenAI, engine: Engine) -> None:
    text = chat_text(client, engine, max_tokens=24, **FIXED)
    stop = text[len(text) // 2 :][:6]
    answer = client.chat.completions.create(model=engine.model, messages=QUESTION, max_tokens=24, stop=[stop, "\u2603"], **FIXED)
    choice = answer.choices[0]
    assert choice.finish_reason == "stop"
    assert choice.message.content == text[: text.index(stop)]
    assert choice.model_dump()["stop_reason"] == stop
    assert answer.usage
    assert 0 < answer.usage.completion_tokens < 24


def test_a_stop_string_ends_a_stream_at_the_same_place(client: openai.OpenAI, engine: Engine) -> None:
    text = chat_text(client, engine, max_tokens=24, **FIXED)
    stop = text[len(text) // 2 :][:6]
    chunks = chat_stream(client, engine, max_tokens=24, stop=stop, **FIXED)
    assert joined(chunks) == text[: text.index(stop)]
    assert chunks[-1].choices[0].finish_reason == "stop"


def test_a_stop_string_stays_in_the_text_when_asked(client: openai.OpenAI, engine: Engine) -> None:
    text = chat_text(client, engine, max_tokens=24, **FIXED)
    stop = text[len(text) // 2 :][:6]
    body = {**FIXED["extra_body"], "include_stop_str_in_output": True}
    assert chat_text(client, engine, max_tokens=24, stop=stop, temperature=0, extra_body=body).endswith(stop)


def test_n_answers_come_with_their_index_and_are_all_counted(client: openai.OpenAI, engine: Engine) -> None:
    answer = client.chat.completions.create(
        model=engine.model, messages=QUESTION, max_tokens=4, n=3, extra_body={"ignore_eos": True}
    )
    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    assert answer.usage
    assert answer.usage.completion_tokens == 12


def test_n_answers_stream_side_by_side(client: openai.OpenAI, engine: Engine) -> None:
    chunks = chat_stream(
        client, engine, max_tokens=4, n=2, stream_options={"include_usage": True}, extra_body={"ignore_eos": True}
    )
    ends = {choice.index: choice.finish_reason for chunk in chunks for choice in chunk.choices if choice.finish_reason}
    assert ends == {0: "length", 1: "length"}
    assert joined(chunks, 0)
    assert joined(chunks, 1)
    assert chunks[-1].usage
    assert chunks[-1].usage.completion_tokens == 8


def test_several_prompts_give_n_answers_each_in_order(client: openai.OpenAI, engine: Engine) -> None:
    answer = client.completions.create(
        model=engine.model, prompt=["One", "Two"], max_tokens=2, n=2, extra_body={"ignore_eos": True}
    )
    assert [choice.index for choice in answer.choices] == [0, 1, 2, 3]
    assert answer.usage
    assert answer.usage.completion_tokens == 8


def test_a_prompt_of_token_ids_counts_its_ids(client: openai.OpenAI, engine: Engine) -> None:
    answer = client.completions.create(model=engine.model, prompt=[5, 6, 7, 8], max_tokens=1)
    assert answer.usage
    assert answer.usage.prompt_tokens == 4


def test_an_echo_puts_the_prompt_before_the_text(client: openai.OpenAI, engine: Engine) -> None:
    answer = client.completions.create(model=engine.model, prompt="Once upon a time", max_tokens=2, echo=True)
    assert answer.choices[0].text.startswith("Once upon a time")
    assert answer.usage
    assert answer.usage.completion_tokens == 2


def test_more_output_than_the_context_leaves_is_cut_to_it(client: openai.OpenAI, engine: Engine) -> None:
    prompt = [7] * (engine.max_model_len - 6)
    answer = client.completions.create(model=engine.model, prompt=prompt, max_tokens=40, **FIXED)
    assert answer.usage
    assert (answer.usage.completion_tokens, answer.usage.total_tokens) == (6, engine.max_model_len)
    assert answer.choices[0].finish_reason == "length"


def test_max_completion_tokens_wins_over_max_tokens(client: openai.OpenAI, engine: Engine) -> None:
    answer = client.chat.completions.create(model=engine.model, messages=QUESTION, max_tokens=9, max_completion_tokens=2, **FIXED)
    assert answer.usage
    assert answer.usage.completion_tokens == 2


def test_content_in_parts_is_the_same_prompt(client: openai.OpenAI, engine: Engine) -> None:
    parts: Any = [{"role": "user", "content": [{"type": "text", "text": QUESTION[0]["content"]}]}]
    counts = [
        client.chat.completions.create(model=engine.model, messages=messages, max_tokens=1).usage
        for messages in (parts, QUESTION)
    ]
    assert counts[0]
    assert counts[1]
    assert counts[0].prompt_tokens == counts[1].prompt_tokens


def test_chat_log_probabilities_come_for_each_token(client: openai.OpenAI, engine: Engine) -> None:
    answer = client.chat.completions.create(
        model=engine.model, messages=QUESTION, max_tokens=3, logprobs=True, top_logprobs=2, **FIXED
    )
    logprobs = answer.choices[0].logprobs
    assert logprobs
    assert logprobs.content
    assert "".join(token.token for token in logprobs.content) == answer.choices[0].message.content
    assert [len(token.top_logprobs) for token in logprobs.content] == [2, 2, 2]
    assert all(token.logprob <= 0 for token in logprobs.content)


def test_completion_log_probabilities_come_for_each_token(client: openai.OpenAI, engine: Engine) -> None:
    answer = client.completions.create(model=engine.model, prompt="Once", max_tokens=3, logprobs=1, **FIXED)
    logprobs = answer.choices[0].logprobs
    assert logprobs
    assert logprobs.tokens
    assert "".join(logprobs.tokens) == answer.choices[0].text
    assert logprobs.text_offset == [0, len(logprobs.tokens[0]), len(logprobs.tokens[0]) + len(logprobs.tokens[1])]


def test_the_request_id_header_is_in_the_answers_id(http: httpx.Client, engine: Engine) -> None:
    body = {"model": engine.model, "messages": QUESTION, "max_tokens": 1}
    answer = http.post("/v1/chat/completions", json=body, headers={"X-Request-Id": "trace-7"}).json()
    assert answer["id"] == "chatcmpl-trace-7"


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions"])
def test_a_request_without_a_model_gets_the_served_one(http: httpx.Client, engine: Engine, path: str) -> None:
    answer = http.post(path, json={"messages": QUESTION, "prompt": "Once", "max_tokens": 1}).json()
    assert answer["model"] == engine.model


def test_fields_of_vllm_and_unknown_ones_are_taken(http: httpx.Client, engine: Engine) -> None:
    more = {"cache_salt": "ab", "priority": 0, "top_k": 5, "repetition_penalty": 1.1, "vllm_xargs": {"a": 1}, "nonsense": 3}
    body = {"model": engine.model, "messages": QUESTION, "max_tokens": 1, **more}
    assert http.post("/v1/chat/completions", json=body).status_code == httpx.codes.OK
