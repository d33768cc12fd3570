"""How long one engine step takes: the step model of continuous batching."""

from dataclasses import dataclass


def step_seconds(  # noqa: PLR0917 - numba takes no keyword-only arguments
    base: float,
    per_sequence: float,
    per_kv_token: float,
    per_prefill_token: float,
    batch: int,
    kv_tokens: int,
    prefill_tokens: int,
) -> float:
    """Seconds of one step: `a + b * batch + c * kv_tokens + p * prefill_tokens`.

    Scalars in, scalar out, no branches: the capacity solver compiles this very function.

    Args:
        base: `a`, seconds of a step whatever is in it (launches, scheduling, sampling).
        per_sequence: `b`, seconds per decoding sequence.
        per_kv_token: `c`, seconds per KV token that the step's sequences attend to.
        per_prefill_token: `p`, seconds per prompt token computed in the step.
        batch: Decoding sequences in the step.
        kv_tokens: KV tokens of all sequences in the step, those written in it included.
        prefill_tokens: Prompt tokens computed in the step.
    """
    return base + per_sequence * batch + per_kv_token * kv_tokens + per_prefill_token * prefill_tokens


@dataclass(frozen=True, kw_only=True)
class StepModel:
    """The coefficients of `step_seconds`, each in seconds. All are finite and at least 0; `base_seconds` is above 0.

    A positive base is what makes batching pay: with none, one sequence would decode as cheaply per token as a full batch.
    """

    base_seconds: float
    per_sequence_seconds: float = 0.0
    per_kv_token_seconds: float = 0.0
    per_prefill_token_seconds: float = 0.0

    def __post_init__(self) -> None:
        coefficients = (self.base_seconds, self.per_sequence_seconds, self.per_kv_token_seconds, self.per_prefill_token_seconds)
        if not all(0 <= value < float("inf") for value in coefficients):
            raise ValueError(f"step model: every coefficient must be finite and at least 0, got {coefficients}")
        if self.base_seconds == 0:
            raise ValueError("step model: base_seconds must be above 0, a step never takes no time")

    def seconds(self, *, batch: int, kv_tokens: int, prefill_tokens: int) -> float:
        """Seconds of one step; see `step_seconds`."""
        return step_seconds(
            self.base_seconds,
            self.per_sequence_seconds,
            self.per_kv_token_seconds,
            self.per_prefill_token_seconds,
            batch,
            kv_tokens,
            prefill_tokens,
        )

    def decode_tokens_per_second(self, *, batch: int, context_tokens: float) -> float:
        """Output tokens per second of a steady batch, no prefill, at a mean context of `context_tokens` per sequence."""
        if batch < 1:
            raise ValueError(f"decode rate: the batch must be at least 1, got {batch}")
        per_sequence = self.per_sequence_seconds + self.per_kv_token_seconds * context_tokens
        return batch / (self.base_seconds + batch * per_sequence)
