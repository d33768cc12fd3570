"""Prompt and output lengths for a command: from a file, or from a mean and a coefficient of variation."""

import csv
import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from warmfront_forecaster.capacity.workload import Lengths

DRAWN = 20_000
SEED = 1
COLUMNS = ("prompt_tokens", "output_tokens")


class LengthsError(ValueError):
    """The lengths cannot be used; the message says why."""


def drawn(*, prompt_tokens: float, prompt_cv: float, output_tokens: float, output_cv: float, most_tokens: int) -> Lengths:
    """Log-normal lengths, independent of each other, none longer than `most_tokens` together."""
    rng = np.random.default_rng(SEED)
    return fitting(
        _log_normal(rng, prompt_tokens, prompt_cv), _log_normal(rng, output_tokens, output_cv), most_tokens=most_tokens
    )


def read(path: Path, *, most_tokens: int) -> Lengths:
    """Lengths of recorded requests: a CSV file whose first line names the columns prompt_tokens and output_tokens.

    Raises:
        LengthsError: The file cannot be read, lacks a column or a request, or a line holds what is no length.
    """
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = csv.DictReader(file)
            missing = [name for name in COLUMNS if name not in (rows.fieldnames or ())]
            if missing:
                raise LengthsError(f"{path}: no column {missing[0]}; the first line must name prompt_tokens and output_tokens")
            pairs = [_pair(path, rows.line_num, row) for row in rows]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise LengthsError(f"{path}: {error}") from error
    if not pairs:
        raise LengthsError(f"{path}: no request in it")
    prompts, outputs = np.array(pairs, dtype=float).T
    return fitting(prompts, outputs, most_tokens=most_tokens)


def fitting(prompts: NDArray[np.float64], outputs: NDArray[np.float64], *, most_tokens: int) -> Lengths:
    """Whole tokens, cut to what a model of `most_tokens` context takes: the prompt first, then the output."""
    prompt = np.clip(np.rint(prompts), 1, most_tokens - 1).astype(np.int64)
    output = np.clip(np.rint(outputs), 1, most_tokens - prompt).astype(np.int64)
    return Lengths(prompt_tokens=prompt, output_tokens=output)


def _pair(path: Path, line: int, row: dict[str, str | None]) -> tuple[float, float]:
    values = []
    for name in COLUMNS:
        text = row[name]
        if text is None or not text.strip().isdecimal() or int(text) < 1:
            raise LengthsError(f"{path}, line {line}: {name} is {text!r}; give a whole number above 0")
        values.append(float(text))
    return values[0], values[1]


def _log_normal(rng: np.random.Generator, mean: float, cv: float) -> NDArray[np.float64]:
    variance = math.log1p(cv * cv)
    return rng.lognormal(math.log(mean) - variance / 2, math.sqrt(variance), DRAWN)
