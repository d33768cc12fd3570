"""From a checked request to the sequences that the engine runs and the answer's text. No HTTP, no clock."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from e2e.enginesim import driver, tokenizer
from e2e.enginesim.checks import room_for_output
from e2e.enginesim.plan import OutputRequest, Plan, plan_output, prompt_digest
from e2e.enginesim.protocol import ChatRequest, CompletionRequest, GenerationRequest
from e2e.enginesim.settings import HardwareSettings
from warmfront_forecaster.capacity.token_engine import Work

_ids = count()


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One answer. `echo` is prompt text that comes before it, empty where it was not asked for."""

    plan: Plan
    sequence: driver.Sequence
    echo: str = ""


@dataclass(frozen=True, kw_only=True)
class Generation:
    """All answers of a request, in the order of their index, and the tokens of its prompts."""

    choices: tuple[Choice, ...]
    prompt_tokens: int

    @property
    def sequences(self) -> list[driver.Sequence]:
        """What the engine runs."""
        return [choice.sequence for choice in self.choices]

    @property
    def request_ids(self) -> list[str]:
        """The engine's ids of them."""
        return [choice.sequence.work.request_id for choice in self.choices]


def plan_chat(request: ChatRequest, hardware: HardwareSettings, *, max_model_len: int) -> Generation:
    """The answers to a conversation.

    Raises:
        InvalidValueError: It does not fit in the context.
    """
    messages = [(message.role, message.text) for message in request.messages]
    tokens = tokenizer.encode_chat(messages, add_generation_prompt=request.add_generation_prompt)
    return _plan(request, [tokens], [""], hardware, max_model_len)


def plan_completion(request: CompletionRequest, hardware: HardwareSettings, *, max_model_len: int) -> Generation:
    """The answers to one or several prompts, `n` for each.

    Raises:
        InvalidValueError: A prompt does not fit in the context.
    """
    prompts = _prompts(request)
    echoes = [tokenizer.decode(tokens) if request.echo else "" for tokens in prompts]
    return _plan(request, prompts, echoes, hardware, max_model_len)


def _prompts(request: CompletionRequest) -> list[list[int]]:
    prompt = request.prompt or []
    if isinstance(prompt, str):
        return [tokenizer.encode(prompt)]
    if prompt and isinstance(prompt[0], int):
        return [[token for token in prompt if isinstance(token, int)]]
    return [tokenizer.encode(part) if isinstance(part, str) else part for part in prompt if not isinstance(part, int)]


def _plan(
    request: GenerationRequest,
    prompts: Sequence[list[int]],
    echoes: Sequence[str],
    hardware: HardwareSettings,
    max_model_len: int,
) -> Generation:
    choices: list[Choice] = []
    for tokens, echo in zip(prompts, echoes, strict=True):
        output = _output(request, room_for_output(len(tokens), max_model_len=max_model_len))
        digest = prompt_digest(tokens)
        for index in range(request.n):
            plan = plan_output(hardware, output, digest=digest, choice=index, request_seed=request.seed)
            choices.append(Choice(plan=plan, sequence=_sequence(plan, output, len(tokens)), echo=echo))
    return Generation(choices=tuple(choices), prompt_tokens=sum(map(len, prompts)))


def _output(request: GenerationRequest, room: int) -> OutputRequest:
    return OutputRequest(
        limit_tokens=room,
        max_tokens=request.output_tokens_asked,
        min_tokens=min(request.min_tokens, room),
        ignore_eos=request.ignore_eos,
        stop=request.stops,
        include_stop=request.include_stop_str_in_output,
    )


def _sequence(plan: Plan, output: OutputRequest, prompt_tokens: int) -> driver.Sequence:
    # The id is ours: clients may send the same `x-request-id` twice at the same time.
    work = Work(request_id=f"sequence-{next(_ids)}", prompt_tokens=prompt_tokens, output_tokens=len(plan.pieces))
    limit = output.limit_tokens if output.max_tokens is None else output.max_tokens
    return driver.Sequence(work=work, max_tokens=limit, finish_reason=plan.finish_reason)
