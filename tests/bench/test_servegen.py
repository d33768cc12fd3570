"""Recorded services are read as their files say."""

import json
from pathlib import Path

import numpy as np
import pytest

from bench.servegen import STEP_SECONDS, clients

WINDOW = 6 * 3_600


def write(folder: Path, name: str, rates: list[float], windows: dict[int, tuple[str, str]]) -> None:
    folder.mkdir(exist_ok=True)
    lines = [f"{i * STEP_SECONDS},{rate},1.2,Gamma,0,0" for i, rate in enumerate(rates)]
    (folder / f"chunk-{name}-trace.csv").write_text("\n".join(lines) + "\n")
    known = {str(start): {"input_tokens": prompts, "output_tokens": outputs} for start, (prompts, outputs) in windows.items()}
    (folder / f"chunk-{name}-dataset.json").write_text(json.dumps(known))


def test_the_busiest_client_comes_first_and_lengths_are_those_of_the_windows_asked_for(tmp_path: Path) -> None:
    folder = tmp_path / "servegen-m-small"
    busy = [2.0] * 36 + [0.0] * 36 + [1.0] * 72
    windows = {
        0: ("{10: 1.0}", "{5: 1.0}"),
        WINDOW: ("{99: 1.0}", "{99: 1.0}"),
        2 * WINDOW: ("{30: 0.25, 40: 0.75}", "{7: 1.0}"),
        3 * WINDOW: ("{}", "{}"),
    }
    write(folder, "0", [0.1] * 144, {0: ("{1: 1.0}", "{1: 1.0}")})
    write(folder, "3", busy, windows)
    first, second = clients(tmp_path)
    assert (first.name, second.name) == ("c3", "c0")
    assert first.requests.sum() == pytest.approx((36 * 2 + 72) * STEP_SECONDS)
    assert first.windows(0, 1) == [0, 2 * WINDOW]  # one had no traffic, one no lengths
    assert first.windows(1, 2) == []
    drawn = first.draw(np.random.default_rng(1), first.windows(0, 1), 30_000)
    assert {tuple(pair) for pair in drawn.tolist()} == {(10, 5), (30, 7), (40, 7)}
    assert (drawn[:, 0] == 10).mean() == pytest.approx(2 / 3, abs=0.02)  # by traffic, not by window
    assert (drawn[:, 0] == 40).mean() == pytest.approx(1 / 3 * 0.75, abs=0.02)


def test_a_folder_without_recordings_is_named(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"no chunk-N-dataset\.json"):
        clients(tmp_path)
