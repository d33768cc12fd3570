"""The folder `operator/` must never hide the standard library's module of that name."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "flags", [["-c"], ["-S", "-c"]], ids=["as started by a user", "without site packages, which may preload it"]
)
def test_python_started_from_the_root_imports_the_standard_library_operator(flags: list[str]) -> None:
    code = "import operator; print(operator.add(1, 2), operator.__file__)"
    done = subprocess.run([sys.executable, *flags, code], cwd=ROOT, capture_output=True, text=True, check=True)
    total, path = done.stdout.split()
    assert total == "3"
    assert not Path(path).is_relative_to(ROOT / "operator")


@pytest.mark.parametrize("folder", ["operator", "tests/operator"])
def test_the_operator_folders_are_no_packages(folder: str) -> None:
    assert list((ROOT / folder).glob("__init__.py")) == []


def test_no_loose_module_lies_in_the_operator_folder() -> None:
    assert list((ROOT / "operator").glob("*.py")) == []


def test_no_test_folder_is_a_package() -> None:
    assert list((ROOT / "tests").rglob("__init__.py")) == []
