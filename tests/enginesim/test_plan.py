"""What will be answered: lengths, ends and stop strings from the seed; and the tokenizer that counts it."""

import statistics
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from e2e.enginesim import tokenizer
from e2e.enginesim.plan import OutputRequest, Plan, plan_output, prompt_digest
from e2e.enginesim.settings import HardwareSettings

DRAWN = HardwareSettings(output_lengths="lognormal", output_mean_tokens=100, output_sigma=0.5)
ASKED = HardwareSettings()


def plan(hardware: HardwareSettings = ASKED, *, prompt: int = 0, choice: int = 0, seed: int | None = None, **asked: Any) -> Plan:
    request = OutputRequest(**{"limit_tokens": 4000, **asked})
    return plan_output(hardware, request, digest=prompt_digest([prompt]), choice=choice, request_seed=seed)


def test_as_many_tokens_as_asked_end_by_length() -> None:
    answer = plan(max_tokens=37)
    assert (len(answer.pieces), answer.finish_reason) == (37, "length")


def test_no_more_than_the_context_leaves() -> None:
    assert len(plan(max_tokens=37, limit_tokens=5).pieces) == 5


def test_drawn_lengths_have_the_set_mean_and_spread() -> None:
    lengths = [len(plan(DRAWN, prompt=number).pieces) for number in range(4000)]
    # Of a lognormal with mean 100 and sigma 0.5: the standard deviation is 100 * sqrt(exp(0.25) - 1) = 53.3.
    assert statistics.mean(lengths) == pytest.approx(100, rel=0.03)
    assert statistics.stdev(lengths) == pytest.approx(53.3, rel=0.08)


def test_a_drawn_length_ends_by_itself_and_its_last_token_shows_nothing() -> None:
    answer = plan(DRAWN)
    assert (answer.finish_reason, answer.pieces[-1]) == ("stop", "")
    assert all(answer.pieces[:-1])


def test_max_tokens_caps_a_drawn_length() -> None:
    whole = plan(DRAWN)
    capped = plan(DRAWN, max_tokens=len(whole.pieces) - 5)
    assert capped.finish_reason == "length"
    assert capped.pieces == whole.pieces[:-5]


def test_ignoring_the_end_gives_all_that_was_asked() -> None:
    answer = plan(DRAWN, max_tokens=2000, ignore_eos=True)
    assert (len(answer.pieces), answer.finish_reason) == (2000, "length")


def test_min_tokens_holds_a_short_answer_up() -> None:
    short = min(range(200), key=lambda number: len(plan(DRAWN, prompt=number).pieces))
    assert len(plan(DRAWN, prompt=short, min_tokens=90).pieces) == 90


def test_without_max_tokens_a_length_is_drawn() -> None:
    answers = [plan(prompt=number) for number in range(50)]
    assert len({len(answer.pieces) for answer in answers}) > 20
    assert {answer.finish_reason for answer in answers} == {"stop"}


def test_prompt_choice_and_seeds_tell_answers_apart_and_repeat_them() -> None:
    variants: list[dict[str, Any]] = [
        {},
        {"prompt": 1},
        {"choice": 1},
        {"seed": 1},
        {"hardware": HardwareSettings(seed=1)},
    ]
    answers = [plan(max_tokens=20, **variant) for variant in variants]
    assert len({answer.pieces for answer in answers}) == len(variants)
    assert answers == [plan(max_tokens=20, **variant) for variant in variants]


def test_another_process_gives_the_same_answer() -> None:
    program = (
        "from e2e.enginesim.plan import *; from e2e.enginesim.settings import HardwareSettings as H;"
        "print(plan_output(H(), OutputRequest(limit_tokens=99, max_tokens=9), digest=prompt_digest([0])).pieces)"
    )
    out = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    assert out.strip() == str(plan(max_tokens=9).pieces)


def test_a_stop_string_across_tokens_ends_the_answer_with_the_token_that_completes_it() -> None:
    whole = plan(max_tokens=30)
    text = "".join(whole.pieces)
    stop = whole.pieces[9][-1:] + whole.pieces[10][:2]
    answer = plan(max_tokens=30, stop=("~~", stop))
    at = text.index(stop)
    assert (answer.finish_reason, answer.stop_reason) == ("stop", stop)
    assert "".join(answer.pieces) == text[:at]
    tokens_to_complete_it = next(n for n in range(31) if len("".join(whole.pieces[:n])) >= at + len(stop))
    assert len(answer.pieces) == tokens_to_complete_it


def test_the_stop_string_that_is_complete_first_wins() -> None:
    whole = plan(max_tokens=30)
    early, late = whole.pieces[5], "".join(whole.pieces[4:12])
    assert plan(max_tokens=30, stop=(late, early)).stop_reason == early


def test_a_stop_string_within_min_tokens_is_passed_over() -> None:
    whole = plan(max_tokens=30)
    answer = plan(max_tokens=30, stop=(whole.pieces[2],), min_tokens=10)
    assert len(answer.pieces) > 10


def test_the_stop_string_stays_when_asked() -> None:
    stop = plan(max_tokens=30).pieces[7]
    assert "".join(plan(max_tokens=30, stop=(stop,), include_stop=True).pieces).endswith(stop)


def test_the_text_counts_as_many_tokens_as_were_generated() -> None:
    answer = plan(max_tokens=500)
    assert len(tokenizer.encode("".join(answer.pieces))) == 500


@settings(max_examples=200, deadline=None)
@given(st.text())
def test_text_goes_to_tokens_and_back(text: str) -> None:
    tokens = tokenizer.encode(text)
    assert tokenizer.decode(tokens) == text
    assert all(0 <= token < 2**63 for token in tokens)


@given(st.integers(0, 2**63 - 1))
def test_any_id_has_a_text(token: int) -> None:
    assert tokenizer.piece(token)


def test_english_text_has_about_four_characters_to_a_token() -> None:
    text = "The quick brown fox jumps over the lazy dog, and nobody in the village is surprised any more. " * 10
    assert 3 < len(text) / len(tokenizer.encode(text)) < 5


def test_a_conversation_is_framed_by_its_roles() -> None:
    text = tokenizer.decode(tokenizer.encode_chat([("user", "Hello")]))
    assert text == "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n"
