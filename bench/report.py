"""What every benchmark leaves: a table on the screen, and `build/bench/NAME.json` with its checks."""

import json
import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Self

FOLDER: Final = Path("build/bench")


@dataclass(frozen=True, kw_only=True)
class Options:
    """How it was asked for: `DATA=folder`, `QUICK=1` (under a minute), `SEED=n`."""

    data: Path
    quick: bool
    seed: int

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Self:
        """Read them from environment variables.

        Raises:
            SystemExit: SEED is no whole number, or there is no such folder.
        """
        data, seed = Path(environment.get("DATA") or "../shared/data"), environment.get("SEED") or "1"
        if not seed.isdecimal():
            raise SystemExit(f"SEED={seed}: give a whole number")
        if not data.is_dir():
            raise SystemExit(f"DATA={data}: no such folder; see docs/how-to/benchmarks.md for what belongs into it")
        return cls(data=data, quick=environment.get("QUICK", "") not in {"", "0"}, seed=int(seed))


@dataclass(frozen=True, kw_only=True)
class Check:
    """A goal with its figure."""

    name: str
    value: float
    goal: str
    holds: bool


@dataclass(kw_only=True)
class Report:
    """Collects what a run found."""

    name: str
    inputs: dict[str, Any]
    checks: list[Check] = field(default_factory=list)
    table: list[dict[str, Any]] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    def row(self, **cells: Any) -> None:  # noqa: ANN401 - a cell is any number or text
        """Add a row and show it."""
        print("  ".join(f"{name} {_shown(cell)}" for name, cell in cells.items()), flush=True)
        self.table.append(cells)

    def at_least(self, name: str, value: float, goal: float) -> None:
        """Hold a figure to a lower bound."""
        self._check(name, value, f">= {goal:g}", holds=value >= goal)

    def at_most(self, name: str, value: float, goal: float) -> None:
        """Hold a figure to an upper bound."""
        self._check(name, value, f"<= {goal:g}", holds=value <= goal)

    def write(self, folder: Path = FOLDER) -> Path:
        """Write the file. A goal that is missed is a result, not a failure: the exit status stays 0."""
        seconds = round(time.monotonic() - self.began, 1)
        document = {
            "name": self.name,
            "seconds": seconds,
            "inputs": self.inputs,
            "checks": [asdict(check) for check in self.checks],
            "table": self.table,
        }
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.name}.json"
        path.write_text(json.dumps(document, indent=1) + os.linesep, encoding="utf-8")
        print(f"{path}: {sum(check.holds for check in self.checks)} of {len(self.checks)} goals met, {seconds} s")
        return path

    def _check(self, name: str, value: float, goal: str, *, holds: bool) -> None:
        print(f"{'met   ' if holds else 'MISSED'}  {name}: {_shown(value)} (goal {goal})")
        self.checks.append(Check(name=name, value=value, goal=goal, holds=holds))


def _shown(cell: object) -> str:
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)
