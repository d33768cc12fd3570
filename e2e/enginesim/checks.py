"""What the engine refuses, with vLLM's own words where clients may read them."""

from typing import Final

from e2e.enginesim.errors import InvalidValueError, UnknownModelError
from e2e.enginesim.protocol import ChatRequest, CompletionRequest, GenerationRequest

MOST_CHOICES: Final = 16_384  # vLLM's own bound on `n`


def check_model(model: str | None, served: tuple[str, ...]) -> None:
    """No model means the served one.

    Raises:
        UnknownModelError: Another model than those served.
    """
    if model and model not in served:
        raise UnknownModelError(f"The model `{model}` does not exist. Valid aliases: {', '.join(served)}.", param="model")


def check_sampling(request: GenerationRequest, *, max_model_len: int) -> None:
    """Bounds of the sampling parameters.

    Raises:
        InvalidValueError: The first one that is out of its bounds.
    """
    _check_stream_options(request)
    _check_max_tokens(request, max_model_len)
    _check_choices(request)
    _check_ranges(request)
    if "" in request.stops:
        raise InvalidValueError("stop cannot contain an empty string.")


def check_chat(request: ChatRequest) -> None:
    """What only chat can get wrong.

    Raises:
        InvalidValueError: No message, or alternatives of log probabilities that are not asked for.
    """
    if not request.messages:
        raise InvalidValueError("Cannot apply chat template to an empty conversation. Provide at least one message.")
    if request.top_logprobs and not request.logprobs:
        raise InvalidValueError.of("when using `top_logprobs`, `logprobs` must be set to true.", param="top_logprobs")
    if (request.top_logprobs or 0) < 0:
        raise InvalidValueError.of(
            "`top_logprobs` must be a positive value or -1.", param="top_logprobs", value=request.top_logprobs
        )


def check_completion(request: CompletionRequest) -> None:
    """What only completions can get wrong.

    Raises:
        InvalidValueError: No prompt, or a negative number of log probabilities.
    """
    prompt = request.prompt
    if not prompt or (isinstance(prompt, list) and any(part in ("", []) for part in prompt)):
        raise InvalidValueError.of("Either prompt or prompt_embeds must be provided and non-empty.", param="prompt")
    if (request.logprobs or 0) < 0:
        raise InvalidValueError.of("`logprobs` must be a positive value.", param="logprobs", value=request.logprobs)


def room_for_output(prompt_tokens: int, *, max_model_len: int) -> int:
    """Tokens that the context leaves for the output, at least 1. vLLM cuts what was asked for to it, without a word.

    Raises:
        InvalidValueError: The prompt alone fills the context.
    """
    room = max_model_len - prompt_tokens
    if room < 1:
        raise InvalidValueError.of(
            f"This model's maximum context length is {max_model_len} tokens. However, your prompt contains "
            f"{prompt_tokens} input tokens, which exceeds this limit even without any output tokens. "
            "Please reduce the length of the input prompt.",
            param="input_tokens",
            value=prompt_tokens,
        )
    return room


def _check_stream_options(request: GenerationRequest) -> None:
    if request.stream_options and not request.stream:
        raise InvalidValueError.of("Stream options can only be defined when `stream=True`.", param="stream_options")


def _check_max_tokens(request: GenerationRequest, max_model_len: int) -> None:
    asked = request.output_tokens_asked
    if asked is None:
        return
    if asked < 1:
        raise InvalidValueError.of(f"max_tokens must be at least 1, got {asked}.", param="max_tokens", value=asked)
    if asked > max_model_len:
        raise InvalidValueError.of(
            f"max_tokens={asked} cannot be greater than max_model_len={max_model_len}. Please request fewer output tokens.",
            param="max_tokens",
            value=asked,
        )
    if request.min_tokens > asked:
        raise InvalidValueError(f"min_tokens must be less than or equal to max_tokens={asked}, got {request.min_tokens}.")


def _check_choices(request: GenerationRequest) -> None:
    if request.n < 1:
        raise InvalidValueError(f"n must be at least 1, got {request.n}.")
    if request.n > MOST_CHOICES:
        raise InvalidValueError(f"n must be at most {MOST_CHOICES}, got {request.n}.")
    if request.n > 1 and request.temperature == 0:
        raise InvalidValueError(f"n must be 1 when using greedy sampling, got {request.n}.")


def _check_ranges(request: GenerationRequest) -> None:
    if request.min_tokens < 0:
        raise InvalidValueError(f"min_tokens must be greater than or equal to 0, got {request.min_tokens}.")
    temperature, top_p = request.temperature, request.top_p
    if temperature is not None and temperature < 0:
        raise InvalidValueError.of(
            f"temperature must be non-negative, got {temperature}.", param="temperature", value=temperature
        )
    if top_p is not None and not 0 < top_p <= 1:
        raise InvalidValueError.of(f"top_p must be in (0, 1], got {top_p}.", param="top_p", value=top_p)
    for name in ("presence_penalty", "frequency_penalty"):
        value = getattr(request, name)
        if value is not None and not -2 <= value <= 2:
            raise InvalidValueError(f"{name} must be in [-2, 2], got {value}.")
