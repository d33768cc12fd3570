"""What an engine is: vLLM's own flags from the command line, the simulated hardware from `ENGINESIM_*` variables."""

import argparse
import logging
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from e2e.enginesim.errors import ConfigurationError
from warmfront_forecaster.capacity.step_model import StepModel
from warmfront_forecaster.capacity.token_engine import EngineLimits

log = logging.getLogger(__name__)

Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class HardwareSettings(BaseSettings):
    """The simulated hardware and model.

    The default speeds make a replica that a laptop's load generator can fill: 32 streams decode at about 900 tokens/s.
    """

    model_config = SettingsConfigDict(env_prefix="ENGINESIM_", frozen=True)

    load_seconds: Seconds = 0
    """Start-up, phase one: reading the weights."""
    compile_seconds: Seconds = 0
    """Start-up, phase two: torch.compile."""
    capture_seconds: Seconds = 0
    """Start-up, phase three: capturing CUDA graphs. Nothing listens before it has passed, as in vLLM."""

    prefill_tokens_per_second: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 8_000
    """Prompt tokens computed per second of a step, beside the step's base time."""
    step_base_seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 0.020
    """Decode step: time whatever the batch is."""
    step_per_sequence_seconds: Seconds = 0.0005
    """Decode step: time per sequence in the batch."""
    step_per_kv_token_seconds: Seconds = 0
    """Decode step: time per KV token that is attended to."""
    kv_capacity_tokens: Annotated[int, Field(ge=1)] = 65_536
    """Tokens that fit in the KV cache, rounded down to whole blocks."""

    output_lengths: Literal["request", "lognormal"] = "request"
    """`request`: as long as `max_tokens` asks, drawn where it is absent. `lognormal`: always drawn, `max_tokens` caps it."""
    output_mean_tokens: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 128
    """Mean of the drawn output length."""
    output_sigma: Annotated[float, Field(ge=0, le=5)] = 0.8
    """Standard deviation of its logarithm."""
    seed: int = 0
    """The same seed and prompt give the same output, in length and text."""

    tick_seconds: Annotated[float, Field(ge=0, le=1)] = 0.005
    """Steps that end within so much of each other are delivered in one wake-up of the event loop."""

    @property
    def step_model(self) -> StepModel:
        """The coefficients of the step model."""
        return StepModel(
            base_seconds=self.step_base_seconds,
            per_sequence_seconds=self.step_per_sequence_seconds,
            per_kv_token_seconds=self.step_per_kv_token_seconds,
            per_prefill_token_seconds=1 / self.prefill_tokens_per_second,
        )


class ServerFlags(BaseModel):
    """vLLM's flags that matter here, with vLLM's defaults where it has fixed ones."""

    model_config = ConfigDict(frozen=True)

    host: str = "0.0.0.0"
    port: Annotated[int, Field(ge=0, le=65535)] = 8000
    model: str = "enginesim/model"
    served_model_names: tuple[str, ...] = ()
    max_model_len: Annotated[int, Field(ge=2)] = 8192
    max_num_seqs: Annotated[int, Field(ge=1)] = 256
    max_num_batched_tokens: Annotated[int, Field(ge=1)] = 2048
    block_size: Annotated[int, Field(ge=1)] = 16
    max_num_queued_reqs: Annotated[int, Field(ge=1)] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names under which the model answers; the first one is on answers and metrics."""
        return self.served_model_names or (self.model,)


def engine_limits(flags: ServerFlags, hardware: HardwareSettings) -> EngineLimits:
    """The engine's bounds.

    Raises:
        ConfigurationError: The KV cache cannot hold one request of the longest length; vLLM does not start then either.
    """
    blocks = hardware.kv_capacity_tokens // flags.block_size
    if blocks * flags.block_size < flags.max_model_len:
        raise ConfigurationError(
            f"one request of --max-model-len {flags.max_model_len} tokens does not fit in a KV cache of "
            f"{blocks * flags.block_size}: raise ENGINESIM_KV_CAPACITY_TOKENS or lower --max-model-len"
        )
    return EngineLimits(
        max_num_seqs=flags.max_num_seqs,
        max_num_batched_tokens=max(flags.max_num_batched_tokens, flags.max_num_seqs),
        kv_blocks=blocks,
        block_tokens=flags.block_size,
    )


def parse_flags(argv: Sequence[str]) -> ServerFlags:
    """Read vLLM's command line; flags without meaning here are named in one log line and ignored.

    Raises:
        pydantic.ValidationError: A value out of its bounds.
        SystemExit: `--help`, or a value that is not a number where one is needed.
    """
    parser = _parser()
    known, ignored = parser.parse_known_args([_dashed(arg) for arg in argv])
    if ignored:
        log.info("ignored vLLM flags that the simulator has no use for: %s", " ".join(ignored))
    return ServerFlags.model_validate(vars(known))


def _dashed(arg: str) -> str:
    """Take `--max_model_len` for `--max-model-len`, as vLLM does."""
    name, equals, value = arg.partition("=")
    return name.replace("_", "-") + equals + value if name.startswith("--") else arg


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m e2e.enginesim",
        description="Simulates a vLLM server. Further settings: ENGINESIM_* variables, see e2e/enginesim/settings.py.",
        allow_abbrev=False,
        argument_default=argparse.SUPPRESS,
    )
    for flag in ("--host", "--model"):
        parser.add_argument(flag)
    for flag in (
        "--port",
        "--max-model-len",
        "--max-num-seqs",
        "--max-num-batched-tokens",
        "--block-size",
        "--max-num-queued-reqs",
    ):
        parser.add_argument(flag, type=int)
    parser.add_argument("--served-model-name", nargs="+", dest="served_model_names")
    return parser
