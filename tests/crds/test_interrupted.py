"""Ctrl-C ends any command quietly."""

import pytest

from warmfront_api import cli


def test_ctrl_c_ends_a_command_without_a_traceback(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    def pressed(_name: str, _argv: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "run", pressed)
    assert cli.main(["forecaster"]) == 130
    assert capsys.readouterr().err == ""
