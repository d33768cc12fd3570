"""`warmfront capacity` as its user runs it."""

import json
from pathlib import Path

import pytest

from warmfront_api.cli import main

ENGINE = [
    "--base-ms=8",
    "--per-sequence-ms=0.03",
    "--per-kv-token-ms=0.00004",
    "--per-prefill-token-ms=0.04",
    "--kv-tokens=400000",
]
GOALS = ["--ttft-ms=500", "--itl-ms=50"]
LENGTHS = ["--prompt-tokens=800", "--output-tokens=250"]


def run(*changes: str) -> int:
    return main(["capacity", *ENGINE, *GOALS, *LENGTHS, "--replicas=1,4", "--dispersion=3", *changes])


def test_the_table_says_what_it_rests_on_and_what_a_router_saves(capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == 0
    shown = capsys.readouterr().out
    assert "8 ms + 0.03 ms x sequences + 0.00004 ms x KV tokens + 0.04 ms x prompt tokens" in shown
    assert "TTFT 500 ms, ITL 50 ms, met by 99 % of the requests" in shown
    one, four = ([float(cell) for cell in line.removesuffix("%").split()] for line in shown.splitlines()[-2:])
    assert (one[0], four[0]) == (1, 4)
    assert one[1] == one[3]  # alone, there is nothing to route
    assert four[1] < four[3]
    assert four[5] == pytest.approx(100 * (1 - four[1] / four[3]), abs=2)


def test_json_holds_the_same_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--format=json", "--replicas=1") == 0
    found = json.loads(capsys.readouterr().out)
    (row,) = found["rows"]
    assert row["random"]["requestsPerSecond"] == pytest.approx(row["random"]["safeLoad"] * found["fluid"]["requestsPerSecond"])
    assert row["random"]["missShare"] <= 0.01
    assert found["fluid"]["bottleneck"] == "Compute"


def test_a_small_kv_cache_is_named_as_what_binds(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--kv-tokens=20000", "--replicas=1") == 0
    assert "bound by Memory" in capsys.readouterr().out


def test_recorded_lengths_are_read_and_a_picture_is_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded = tmp_path / "lengths.csv"
    recorded.write_text("output_tokens,prompt_tokens\n100,10\n300,30\n")
    assert run(f"--lengths={recorded}", f"--plot={tmp_path / 'capacity.png'}", "--replicas=1") == 0
    assert "20 prompt and 200 output tokens on average" in capsys.readouterr().out
    assert (tmp_path / "capacity.png").read_bytes().startswith(b"\x89PNG")


def test_too_long_requests_are_said_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded = tmp_path / "lengths.csv"
    recorded.write_text("prompt_tokens,output_tokens\n" + "50,20\n" * 9 + "8000,20\n")
    assert run(f"--lengths={recorded}", "--ttft-ms=200", "--replicas=1") == 0
    assert "10.00 % of the requests are too long" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        pytest.param("--base-ms=0", "--base-ms: '0' is not above 0", id="a step that takes no time"),
        pytest.param("--itl-ms=fast", "--itl-ms: 'fast' is not a number", id="a word for a number"),
        pytest.param("--target=100", "between 0 and 100", id="a target that nothing meets"),
        pytest.param("--replicas=2,x", "--replicas: 'x' is not a whole number", id="one bad fleet of two"),
        pytest.param("--dispersion=nan", "--dispersion: 'nan' is not above 0", id="not a number"),
        pytest.param("--plot=/nowhere/x.png", "there is no folder '/nowhere'", id="a picture for a folder that is not there"),
        pytest.param("--plot=x.txt", "must end in .png", id="a picture of an unknown kind"),
    ],
)
def test_a_wrong_argument_is_refused_by_name_before_any_work(
    argument: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as refused:
        run(argument)
    assert refused.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("prompt_tokens,tokens\n1,2\n", "no column output_tokens"),
        ("prompt_tokens,output_tokens\n", "no request in it"),
        ("prompt_tokens,output_tokens\n5,7\n5,-1\n", "line 3: output_tokens is '-1'"),
        ("prompt_tokens,output_tokens\n5\n", "line 2: output_tokens is None"),
        ("\x00\xff", "no column prompt_tokens"),
    ],
)
def test_a_file_of_lengths_that_cannot_be_used_is_named(
    text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded = tmp_path / "lengths.csv"
    recorded.write_text(text)
    assert run(f"--lengths={recorded}") == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (["--max-num-batched-tokens=100"], "max_num_batched_tokens must be at least max_num_seqs"),
        (["--kv-tokens=10"], "hold no request"),
        (["--lengths=/nowhere.csv"], "/nowhere.csv"),
    ],
)
def test_an_engine_that_cannot_work_is_refused(changes: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*changes) == 2
    assert said in capsys.readouterr().err


def test_lengths_must_come_from_somewhere(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["capacity", *ENGINE, *GOALS, "--prompt-tokens=5"]) == 2
    assert "give --lengths FILE, or both --prompt-tokens and --output-tokens" in capsys.readouterr().err
