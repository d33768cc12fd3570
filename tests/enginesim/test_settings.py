"""What makes an engine: vLLM's flags, the variables, and what does not go together."""

import logging

import pytest
from pydantic import ValidationError

from e2e.enginesim.__main__ import main
from e2e.enginesim.errors import ConfigurationError
from e2e.enginesim.settings import HardwareSettings, ServerFlags, engine_limits, parse_flags


def test_the_flags_that_the_operator_writes_are_read() -> None:
    flags = parse_flags(
        [
            "--host=127.0.0.1",
            "--port",
            "8001",
            "--max-num-seqs",
            "12",
            "--model=org/name",
            "--served-model-name=chat",
            "--max-model-len=4096",
        ]
    )
    assert (flags.host, flags.port, flags.names, flags.max_model_len, flags.max_num_seqs) == (
        "127.0.0.1",
        8001,
        ("chat",),
        4096,
        12,
    )


def test_the_model_is_its_own_name_unless_served_under_others() -> None:
    assert parse_flags(["--model=org/name"]).names == ("org/name",)
    assert parse_flags(["--model=org/name", "--served-model-name", "a", "b"]).names == ("a", "b")


def test_underscores_are_dashes() -> None:
    assert parse_flags(["--max_num_seqs=7"]).max_num_seqs == 7


def test_other_vllm_flags_are_named_in_one_line_and_ignored(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        flags = parse_flags(["--gpu-memory-utilization=0.9", "--enforce-eager", "--port=1"])
    assert flags.port == 1
    (record,) = caplog.records
    assert record.getMessage().endswith("--gpu-memory-utilization=0.9 --enforce-eager")


@pytest.mark.parametrize("argument", ["--port=70000", "--max-num-seqs=0", "--max-model-len=1"])
def test_a_flag_out_of_its_bounds_is_refused(argument: str) -> None:
    with pytest.raises(ValidationError):
        parse_flags([argument])


def test_variables_set_the_hardware(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENGINESIM_PREFILL_TOKENS_PER_SECOND", "1000")
    monkeypatch.setenv("ENGINESIM_STEP_BASE_SECONDS", "0.5")
    model = HardwareSettings().step_model
    assert model.seconds(batch=0, kv_tokens=0, prefill_tokens=100) == pytest.approx(0.5 + 0.1)


@pytest.mark.parametrize(
    ("name", "value"),
    [("LOAD_SECONDS", "-1"), ("PREFILL_TOKENS_PER_SECOND", "0"), ("STEP_BASE_SECONDS", "nan"), ("OUTPUT_LENGTHS", "gauss")],
)
def test_a_variable_without_sense_ends_the_start(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"ENGINESIM_{name}", value)
    assert main([]) == 2


def test_a_cache_that_cannot_hold_one_longest_request_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="raise ENGINESIM_KV_CAPACITY_TOKENS or lower --max-model-len"):
        engine_limits(ServerFlags(max_model_len=4096), HardwareSettings(kv_capacity_tokens=4095))


def test_the_cache_is_whole_blocks() -> None:
    limits = engine_limits(ServerFlags(max_model_len=64, block_size=16), HardwareSettings(kv_capacity_tokens=100))
    assert (limits.kv_blocks, limits.block_tokens) == (6, 16)
