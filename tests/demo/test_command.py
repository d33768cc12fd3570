"""What `make demo` leaves behind and says of it, and what it removes of an earlier run."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from e2e.demo import __main__ as command
from e2e.demo.rehearsal import rehearsal
from e2e.demo.stage import Stage
from e2e.load.__main__ import summary_line
from e2e.load.records import LoadSummary
from e2e.support import kube
from e2e.support.service import Watched

RUNS_LEFT = "The cluster is left running"


@pytest.fixture
def demo(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., list[str]]:
    """Run the outer part with answers to whether the cluster runs; returns the verbs of the cluster's command it used."""
    for name in ("KEEP", "WARMFRONT_KUBECONFIG", "WARMFRONT_CLUSTER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("WARMFRONT_CACHE", str(tmp_path))
    monkeypatch.setattr("sys.argv", ["demo"])

    def run(*, before: bool, after: bool, up: int = 0, keep: bool = False) -> list[str]:
        verbs: list[str] = []
        answers = iter((before, after))

        def call(words: list[str]) -> int:
            verbs.append(words[3])
            return up if words[3] == "up" else 0

        if keep:
            monkeypatch.setitem(os.environ, "KEEP", "1")
        monkeypatch.setattr("subprocess.call", call)
        monkeypatch.setattr(command, "_wait", call)
        monkeypatch.setattr(command, "_runs", lambda: next(answers))
        assert command.main() == up
        return verbs

    return run


def test_a_cluster_that_the_demo_started_is_removed(demo: Callable[..., list[str]]) -> None:
    assert demo(before=False, after=True) == ["up", "in", "down"]


def test_a_cluster_that_ran_before_stays_and_that_is_said(
    demo: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert demo(before=True, after=True) == ["up", "in"]
    assert f"{RUNS_LEFT} (it ran before)" in capsys.readouterr().out


def test_a_kept_cluster_stays_and_that_is_said(demo: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    assert demo(before=False, after=True, keep=True) == ["up", "in"]
    assert f"{RUNS_LEFT} (KEEP=1)" in capsys.readouterr().out


def test_after_a_failed_start_nothing_is_said_to_run(demo: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    assert demo(before=False, after=False, up=1, keep=True) == ["up"]
    said = capsys.readouterr().out
    assert RUNS_LEFT not in said
    assert "The cluster is not running" in said


def test_where_no_cluster_was_made_none_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("WARMFRONT_KUBECONFIG", raising=False)
    monkeypatch.setenv("WARMFRONT_CACHE", str(tmp_path))
    monkeypatch.setenv("WARMFRONT_CLUSTER", "tested-none")
    assert not command._runs()


def test_a_kubeconfig_that_is_not_there_is_told_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WARMFRONT_KUBECONFIG", "/nowhere/at/all")
    monkeypatch.setattr("sys.argv", ["demo"])
    assert command.main() == 1
    assert "no such file" in capsys.readouterr().err


def test_what_is_left_of_a_service_is_itself_and_all_with_its_label(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ...]] = []

    def kubectl(*words: str) -> str:
        asked.append(words)
        return "" if words[1].startswith("inferenceservices") else "deployment.apps/chat\npod/chat-1\n"

    monkeypatch.setattr(kube, "kubectl", kubectl)
    assert Watched(namespace="demo", name="chat").left() == ["deployment.apps/chat", "pod/chat-1"]
    assert all("--namespace=demo" in words for words in asked)
    assert "--selector=warmfront.dev/service=chat" in asked[1]


def stage_cleared(monkeypatch: pytest.MonkeyPatch, lefts: list[list[str]]) -> list[str]:
    deleted: list[str] = []
    monkeypatch.setattr(Watched, "left", lambda _self: lefts.pop(0))
    monkeypatch.setattr(Watched, "delete", lambda self: deleted.append(self.name))
    monkeypatch.setattr(kube, "POLL_SECONDS", 0.0)
    scenario = rehearsal(name="chat", namespace="demo", seconds_to_jump=60.0, played_seconds=1.0)
    stage = Stage(scenario=scenario, workspace=Path(), tell=lambda _: None, show=lambda *_: None)
    stage._clear()
    return deleted


def test_an_earlier_runs_service_is_deleted_and_waited_for_until_its_pods_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    lefts = [["chat", "pod/1"], ["pod/1"], []]
    assert stage_cleared(monkeypatch, lefts) == ["chat"]
    assert lefts == []


def test_on_a_new_cluster_nothing_is_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert stage_cleared(monkeypatch, [[]]) == []


def test_a_load_is_summed_up_in_words() -> None:
    some = LoadSummary(sent=120, failed=2, ttft_p50_seconds=0.1234, ttft_p95_seconds=0.5, duration_p95_seconds=3.1)
    assert summary_line(some) == (
        "120 requests sent, 2 failed; first token after 0.12 s (p50), 0.50 s (p95); whole answer after 3.10 s (p95)"
    )
    none = LoadSummary(sent=1, failed=1, ttft_p50_seconds=None, ttft_p95_seconds=None, duration_p95_seconds=None)
    assert "first token after unknown (p50)" in summary_line(none)
