"""The import contracts hold, and each of them notices when it is broken."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = {
    "warmfront_api": "crds",
    "warmfront_operator": "operator",
    "warmfront_forecaster": "forecaster",
    "warmfront_runtime": "runtime",
}
CONTRACTS = [
    contract["name"] for contract in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
]

# For each contract a module and an import that it must refuse.
VIOLATIONS = {
    "The API models know no component": ("warmfront_api.base", "import kopf"),
    "Pure cores know no I/O, no clock, no environment": ("warmfront_forecaster.planning.types", "import time"),
    "Pure cores reach no edge of their own package either": ("warmfront_operator.domain", "import warmfront_operator.kube"),
    "Planning needs no numeric library: the operator imports it": ("warmfront_forecaster.planning.types", "import numpy"),
    "The operator takes from the forecaster its plan, its contract and its Prometheus client only": (
        "warmfront_operator.domain",
        "import warmfront_forecaster.app",
    ),
    "The forecaster and the runtime know neither the operator nor each other": (
        "warmfront_runtime.gateway",
        "import warmfront_forecaster.contract",
    ),
    "Only the operator's edge knows Kubernetes": ("warmfront_forecaster.contract", "import kubernetes"),
    "prophet has one importer": ("warmfront_forecaster.domain", "import prophet"),
    "numba has one importer": ("warmfront_forecaster.capacity.fleet", "import numba"),
    "matplotlib is imported by what draws only": ("warmfront_forecaster.domain", "import matplotlib"),
    "fastapi has one importer": ("warmfront_forecaster.contract", "import fastapi"),
    "prometheus_api_client has one importer": ("warmfront_operator.kube", "import prometheus_api_client"),
    "kubernetes is imported by the operator's edge only": ("warmfront_operator.metrics", "import kubernetes"),
    "kopf is imported by the operator's entry and handlers only": ("warmfront_operator.kube", "import kopf"),
    "aiohttp is imported by the gateway's edge only": ("warmfront_runtime.errors", "import aiohttp"),
}


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The four packages and the configuration, where a test may break them."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for package, folder in PACKAGES.items():
        shutil.copytree(ROOT / folder / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def lint(folder: Path) -> str:
    """What `lint-imports` prints for the packages in `folder`."""
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache", "--config", "pyproject.toml"]
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "300"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def verdict(report: str, contract: str) -> str:
    """`KEPT` or `BROKEN`, as the report's summary says of a contract."""
    return next(
        line.split()[-1] for line in report.splitlines() if line.startswith(contract) and line.split()[-1] in ("KEPT", "BROKEN")
    )


def append_import(folder: Path, module: str, statement: str) -> None:
    """Add `statement` to a module or package of the copy."""
    path = folder.joinpath(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    file.write_text(f"{file.read_text()}\n{statement}\n")


def test_every_contract_has_a_violation_to_try() -> None:
    assert set(VIOLATIONS) == set(CONTRACTS)


def test_all_contracts_are_kept(copy: Path) -> None:
    report = lint(copy)
    assert {contract: verdict(report, contract) for contract in CONTRACTS} == dict.fromkeys(CONTRACTS, "KEPT"), report


@pytest.mark.parametrize("contract", CONTRACTS)
def test_a_forbidden_import_breaks_its_contract(copy: Path, contract: str) -> None:
    append_import(copy, *VIOLATIONS[contract])
    assert verdict(lint(copy), contract) == "BROKEN"
