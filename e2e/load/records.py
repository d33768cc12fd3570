"""What became of each request, and the figures taken from it. Pure."""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Self


@dataclass(frozen=True, kw_only=True)
class RequestRecord:
    """One request as its client saw it. Times are unix seconds of the load player's machine.

    `first_token_at` None: no token came. `status` None: no HTTP answer came. `error` None: it was served whole.
    """

    number: int
    planned_at: float
    sent_at: float
    first_token_at: float | None
    ended_at: float
    status: int | None
    error: str | None
    output_chunks: int

    @property
    def failed(self) -> bool:
        """Whether the client did not get the whole answer."""
        return self.error is not None

    @property
    def time_to_first_token_seconds(self) -> float | None:
        """From sending to the first token."""
        return None if self.first_token_at is None else self.first_token_at - self.sent_at

    def to_line(self) -> str:
        """Return one line of a result log."""
        return json.dumps(asdict(self))

    @classmethod
    def from_line(cls, line: str) -> Self:
        """Read back a line of a result log."""
        return cls(**json.loads(line))


@dataclass(frozen=True, kw_only=True)
class LoadSummary:
    """Figures over some requests. Quantiles are of the served ones; None: none was served."""

    sent: int
    failed: int
    ttft_p50_seconds: float | None
    ttft_p95_seconds: float | None
    duration_p95_seconds: float | None


def summarize(records: Iterable[RequestRecord]) -> LoadSummary:
    """Return the figures of some requests."""
    listed = list(records)
    served = [record for record in listed if not record.failed]
    ttfts = [ttft for record in served if (ttft := record.time_to_first_token_seconds) is not None]
    return LoadSummary(
        sent=len(listed),
        failed=len(listed) - len(served),
        ttft_p50_seconds=quantile(ttfts, 0.50),
        ttft_p95_seconds=quantile(ttfts, 0.95),
        duration_p95_seconds=quantile([record.ended_at - record.sent_at for record in served], 0.95),
    )


def quantile(values: Sequence[float], q: float) -> float | None:
    """Return the smallest value that at least a share `q` of the values does not exceed; None of none."""
    if not values:
        return None
    return sorted(values)[max(0, math.ceil(q * len(values)) - 1)]


def error_counts(records: Iterable[RequestRecord]) -> dict[str, int]:
    """Count the errors by their text, most frequent first."""
    counts: dict[str, int] = {}
    for record in records:
        if record.error is not None:
            counts[record.error] = counts.get(record.error, 0) + 1
    return dict(sorted(counts.items(), key=lambda item: -item[1]))
