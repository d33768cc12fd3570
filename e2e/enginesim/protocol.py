"""The requests: vLLM's fields that change an answer. Others are accepted and have no effect, as unknown ones have in vLLM."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

TokenIds = list[Annotated[int, Field(ge=0, lt=2**63)]]


class StreamOptions(BaseModel):
    """What a stream carries beside text."""

    include_usage: bool = False
    continuous_usage_stats: bool = False


class GenerationRequest(BaseModel):
    """What chat and completions have in common."""

    model_config = ConfigDict(frozen=True)

    model: str | None = None
    max_tokens: int | None = None
    min_tokens: int = 0
    n: int = 1
    seed: int | None = None
    stop: str | Annotated[list[str], Field(max_length=4)] | None = None
    include_stop_str_in_output: bool = False
    ignore_eos: bool = False
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    temperature: float | None = None
    top_p: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None

    @property
    def stops(self) -> tuple[str, ...]:
        """The stop strings."""
        return (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ())

    @property
    def output_tokens_asked(self) -> int | None:
        """The limit that the client set, None when it set none."""
        return self.max_tokens

    @property
    def alternatives(self) -> int | None:
        """Alternatives per token to report with log probabilities; None: report none."""
        return None


class CompletionRequest(GenerationRequest):
    """`/v1/completions`."""

    prompt: TokenIds | list[TokenIds] | str | list[str] | None = None
    max_tokens: int | None = 16
    echo: bool | None = False
    logprobs: int | None = None

    @property
    def alternatives(self) -> int | None:
        """See `GenerationRequest`."""
        return self.logprobs


class Message(BaseModel):
    """One turn. Content is a string or a list of parts, of which text counts."""

    role: str
    content: str | list[dict[str, Any]] | None = None

    @field_validator("content")
    @classmethod
    def _parts_have_types(cls, content: str | list[dict[str, Any]] | None) -> str | list[dict[str, Any]] | None:
        if isinstance(content, list) and not all(isinstance(part.get("type"), str) for part in content):
            raise ValueError("each content part needs a `type`")
        return content

    @property
    def text(self) -> str:
        """The text of the turn."""
        if isinstance(self.content, list):
            return "\n".join(str(part.get("text", "")) for part in self.content if part["type"] == "text")
        return self.content or ""


class ChatRequest(GenerationRequest):
    """`/v1/chat/completions`."""

    messages: list[Message]
    max_completion_tokens: int | None = None
    logprobs: bool | None = False
    top_logprobs: int | None = 0
    add_generation_prompt: bool = True

    @property
    def output_tokens_asked(self) -> int | None:
        """`max_completion_tokens` wins over the older `max_tokens`."""
        return self.max_tokens if self.max_completion_tokens is None else self.max_completion_tokens

    @property
    def alternatives(self) -> int | None:
        """See `GenerationRequest`."""
        return (self.top_logprobs or 0) if self.logprobs else None


class TokenizeRequest(BaseModel):
    """`/tokenize`, of a prompt or of a conversation."""

    model: str | None = None
    prompt: str | None = None
    messages: list[Message] | None = None
    add_generation_prompt: bool = True
    return_token_strs: bool | None = False


class DetokenizeRequest(BaseModel):
    """`/detokenize`."""

    model: str | None = None
    tokens: TokenIds


Kind = Literal["chat", "completion"]
