"""What one replica can do at most, without any randomness: the fluid throughput within the ITL objective."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from warmfront_forecaster.capacity.step_model import StepModel
from warmfront_forecaster.capacity.token_engine import EngineLimits
from warmfront_forecaster.capacity.workload import Lengths


class Bottleneck(StrEnum):
    """What bounds a replica's throughput."""

    COMPUTE = "Compute"
    MEMORY = "Memory"


@dataclass(frozen=True, kw_only=True)
class LengthMoments:
    """All that the fluid rate needs of the lengths; means over requests.

    `context_tokens` is the mean KV of a sequence over its decode steps, E[in*out + out^2/2] / E[out]. It is weighted by output
    length, since long answers are there for longer; a product of the two means would be 1.1 to 2 times too low.
    """

    prompt_tokens: float
    output_tokens: float
    context_tokens: float

    @classmethod
    def of(cls, lengths: Lengths) -> Self:
        """Measure them on a sample."""
        prompt, output = lengths.prompt_tokens.astype(float), lengths.output_tokens.astype(float)
        token_steps = (prompt * output + output * output / 2).mean()
        return cls(
            prompt_tokens=float(prompt.mean()),
            output_tokens=float(output.mean()),
            context_tokens=float(token_steps / output.mean()),
        )


@dataclass(frozen=True, kw_only=True)
class FluidRate:
    """The largest steady throughput of one replica.

    `batch` is the mean number of sequences that decode then. `meets_itl` is False where not even one sequence alone is decoded
    within the ITL objective; the rate is then that of one sequence at a time.
    """

    requests_per_second: float
    batch: float
    bottleneck: Bottleneck
    meets_itl: bool


def fluid_rate(model: StepModel, limits: EngineLimits, moments: LengthMoments, itl_seconds: float) -> FluidRate:
    """Solve the steady state: B sequences decode, and each step prefills what B/out ended ones make room for.

    A step takes `a + w B / out`, w = p*in + (b + c*context)*out seconds of work per request, so B sequences give
    `rate = B / (out * step) = 1 / (out * a / B + w)`: the larger the batch the better, up to the first of

        (ITL - a) * out / w           the step meets the ITL objective,
        max_num_seqs                  the engine's own bound,
        tokens per step               B + B*in/out <= max_num_batched_tokens,
        kv_blocks / blocks held       the batch that fits into memory.

    The last is where this differs from Little's law at the ITL objective, which charges a fast engine for KV that it frees
    sooner than the objective asks (docs/decisions/0008).
    """
    out = moments.output_tokens
    decode_seconds = model.per_sequence_seconds + model.per_kv_token_seconds * moments.context_tokens
    work_seconds = model.per_prefill_token_seconds * moments.prompt_tokens + decode_seconds * out
    within_itl = (itl_seconds - model.base_seconds) * out / work_seconds if work_seconds > 0 else float("inf")
    compute = min(within_itl, limits.max_num_seqs, limits.max_num_batched_tokens / (1 + moments.prompt_tokens / out))
    memory = limits.kv_blocks / (moments.context_tokens / limits.block_tokens + 0.5)  # the last block is half full on average
    batch = max(1.0, min(compute, memory))
    return FluidRate(
        requests_per_second=1 / (out * model.base_seconds / batch + work_seconds),
        batch=batch,
        bottleneck=Bottleneck.MEMORY if memory < compute else Bottleneck.COMPUTE,
        meets_itl=within_itl >= 1,
    )
