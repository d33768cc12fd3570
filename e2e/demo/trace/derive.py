"""Derive the demo's trace from ServeGen's client data: `python e2e/demo/trace/derive.py FOLDER > e2e/demo/trace/client13.csv`.

FOLDER holds ServeGen's `data/language/m-small` (the files chunk-N-trace.csv and chunk-N-dataset.json).
"""

import ast
import csv
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

CLIENT: Final = 13
DAYS: Final = 11  # days 0 to 9 are the demo's history, day 10 is played; days 11 to 13 are empty
DAY_SECONDS: Final = 86_400
DATASET_WINDOW_SECONDS: Final = 21_600
HEADER: Final = ("second", "requests_per_second", "prompt_tokens", "output_tokens")
NOTE: Final = "# From ServeGen (Alibaba, github.com/alibaba/ServeGen, Apache-2.0), m-small client 13, by derive.py; see README.md"


class Step(NamedTuple):
    """One row: where the ten minutes begin (seconds), their mean rate, and mean tokens of a request ("" where unknown)."""

    second: int
    requests_per_second: str
    prompt_tokens: str
    output_tokens: str


def rates(folder: Path) -> Iterator[tuple[int, float]]:
    """Begin and mean rate of each ten minutes of the days kept."""
    with (folder / f"chunk-{CLIENT}-trace.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.reader(file):
            if int(row[0]) < DAYS * DAY_SECONDS:
                yield int(row[0]), float(row[1])


def mean_tokens(folder: Path) -> dict[int, tuple[str, str]]:
    """Mean prompt and output tokens per request by the begin of each six-hour window that had requests."""
    windows = json.loads((folder / f"chunk-{CLIENT}-dataset.json").read_text(encoding="utf-8"))
    means = {int(begin): (_mean(window["input_tokens"]), _mean(window["output_tokens"])) for begin, window in windows.items()}
    return {begin: (f"{prompt:.1f}", f"{output:.1f}") for begin, (prompt, output) in means.items() if prompt > 0}


def _mean(distribution: str) -> float:
    """Mean of a "{length: probability, ...}" text; 0 for an empty one."""
    return sum(float(length) * float(share) for length, share in ast.literal_eval(distribution).items())


def steps(folder: Path) -> Iterator[Step]:
    """All rows of the derived file."""
    tokens = mean_tokens(folder)
    for second, rate in rates(folder):
        window = second // DATASET_WINDOW_SECONDS * DATASET_WINDOW_SECONDS
        yield Step(second, f"{rate:.4f}", *tokens.get(window, ("", "")))


def main() -> int:
    """Write the file to standard output."""
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    print(NOTE)
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(HEADER)
    writer.writerows(steps(Path(sys.argv[1])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
