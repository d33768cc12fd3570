"""Recorded services: Alibaba's ServeGen, one client a service (rates per 600 s, lengths per 6 h)."""

import ast
import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

FOLDER: Final = "servegen-m-small"
DAY_SECONDS: Final = 86_400
STEP_SECONDS: Final = 600

Histogram = tuple[NDArray[np.int64], NDArray[np.float64]]  # lengths, and their probabilities


@dataclass(frozen=True, kw_only=True, eq=False)
class Client:
    """One client. `requests[i]` came in the STEP_SECONDS from `i * STEP_SECONDS` on; lengths by window start (seconds)."""

    name: str
    requests: NDArray[np.float64]
    prompts: dict[int, Histogram]
    outputs: dict[int, Histogram]

    def windows(self, first_day: int, last_day: int) -> list[int]:
        """Starts of the windows with lengths and traffic, from the first day to before the last."""
        inside = (start for start in sorted(self.prompts) if first_day * DAY_SECONDS <= start < last_day * DAY_SECONDS)
        return [start for start in inside if self._came(start) > 0]

    def draw(self, rng: np.random.Generator, windows: Sequence[int], size: int) -> NDArray[np.int64]:
        """Lengths as they came in these windows, weighted by traffic: (size, 2), prompt and output, drawn independently."""
        weights = np.array([self._came(start) for start in windows])
        counts = rng.multinomial(size, weights / weights.sum())
        parts = [
            np.stack([_drawn(rng, lengths[start], count) for lengths in (self.prompts, self.outputs)], axis=1)
            for start, count in zip(windows, counts, strict=True)
        ]
        pairs: NDArray[np.int64] = rng.permutation(np.concatenate(parts))
        return pairs

    def _came(self, start: int, seconds: int = 6 * 3_600) -> float:
        return float(self.requests[start // STEP_SECONDS : (start + seconds) // STEP_SECONDS].sum())


def clients(data: Path) -> list[Client]:
    """All clients that have lengths, the busiest first."""
    folder = data / FOLDER
    found = [_client(path) for path in sorted(folder.glob("chunk-*-dataset.json"))]
    if not found:
        raise SystemExit(f"{folder}: no chunk-N-dataset.json in it")
    return sorted(found, key=lambda client: -client.requests.sum())


def _client(path: Path) -> Client:
    name = path.name.removeprefix("chunk-").removesuffix("-dataset.json")
    windows = json.loads(path.read_text(encoding="utf-8"))
    prompts, outputs = (
        {int(start): _histogram(window[kind]) for start, window in windows.items()} for kind in ("input_tokens", "output_tokens")
    )
    known = [start for start in prompts if len(prompts[start][0]) and len(outputs[start][0])]
    with path.with_name(f"chunk-{name}-trace.csv").open(newline="", encoding="utf-8") as file:
        rates = [float(row[1]) for row in csv.reader(file)]
    return Client(
        name=f"c{name}",
        requests=np.array(rates) * STEP_SECONDS,
        prompts={start: prompts[start] for start in known},
        outputs={start: outputs[start] for start in known},
    )


def _histogram(text: str) -> Histogram:
    """A histogram as the files hold it: the text of a Python dictionary, length to probability."""
    shares = {length: share for length, share in ast.literal_eval(text).items() if length >= 1}
    weights = np.array(list(shares.values()), dtype=float)
    return np.array(list(shares), dtype=np.int64), weights / weights.sum() if len(weights) else weights


def _drawn(rng: np.random.Generator, histogram: Histogram, count: int) -> NDArray[np.int64]:
    lengths, shares = histogram
    return rng.choice(lengths, size=count, p=shares)
