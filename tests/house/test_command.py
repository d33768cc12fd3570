"""The `warmfront` command: lazy, and clear about what is missing."""

import subprocess
import sys

import pytest

from warmfront_api import cli


def test_help_names_every_subcommand(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in cli.SUBCOMMANDS)


def test_no_argument_shows_the_usage_and_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 2
    assert "usage: warmfront" in capsys.readouterr().out


def test_an_unknown_command_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["oprator"]) == 2
    assert "unknown command 'oprator'" in capsys.readouterr().err


def test_help_loads_no_component() -> None:
    code = (
        "import sys; from warmfront_api import cli; cli.main(['--help']);"
        "print([m for m in sys.modules if m.split('.')[0] in ('kopf', 'kubernetes', 'fastapi', 'aiohttp', 'prophet', 'pandas')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("command", "package"),
    [("operator", "kopf"), ("forecaster", "fastapi"), ("gateway", "aiohttp")],
)
def test_a_missing_extra_says_what_to_install(command: str, package: str) -> None:
    """An import hook hides the package, as on a machine where the extra is not installed."""
    code = (
        "import sys\n"
        "class Hide:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name.split('.')[0] == {package!r}:\n"
        f"            raise ModuleNotFoundError('hidden', name={package!r})\n"
        "sys.meta_path.insert(0, Hide())\n"
        "from warmfront_api import cli\n"
        f"sys.exit(cli.main([{command!r}]))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    extra = cli.SUBCOMMANDS[command].extra
    assert done.returncode == 2
    assert f"pip install 'warmfront[{extra}]'" in done.stderr
    assert "Traceback" not in done.stderr
