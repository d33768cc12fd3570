"""A recorded request rate: piecewise constant, as its source publishes it. Pure."""

import bisect
import csv
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Self

from e2e.history.errors import TraceError

DAY_SECONDS = 86_400.0


@dataclass(frozen=True, kw_only=True)
class Step:
    """A stretch of constant rate. Seconds since the trace's start; requests per second."""

    start_seconds: float
    end_seconds: float
    rate: float


class RateTrace:
    """Requests per second over time, constant between the given times; zero before the first and after the last step."""

    def __init__(self, starts_seconds: Iterable[float], rates: Iterable[float], *, end_seconds: float) -> None:
        """Take step starts (ascending, seconds) with a rate each (requests/s, >= 0), and where the last step ends.

        Raises:
            TraceError: The times do not ascend, a rate is negative, or the lengths differ.
        """
        self._edges = [*starts_seconds, end_seconds]
        self._rates = list(rates)
        self._check()
        self._requests_before = list(self._accumulated())

    @classmethod
    def from_csv(cls, lines: Iterable[str], *, time_column: str, rate_column: str) -> Self:
        """Read a CSV with a header; the last step is as long as the one before it.

        Lines that begin with `#` are comments (attribution stands there).
        """
        rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
        if len(rows) < 2:
            raise TraceError("a trace needs at least two rows: give more of it")
        starts = [_number(row, time_column) for row in rows]
        rates = [_number(row, rate_column) for row in rows]
        return cls(starts, rates, end_seconds=2 * starts[-1] - starts[-2])

    @property
    def start_seconds(self) -> float:
        """Where the first step starts."""
        return self._edges[0]

    @property
    def end_seconds(self) -> float:
        """Where the last step ends."""
        return self._edges[-1]

    @property
    def peak(self) -> float:
        """The highest rate, requests per second."""
        return max(self._rates)

    def rate_at(self, seconds: float) -> float:
        """Requests per second at a time."""
        index = bisect.bisect_right(self._edges, seconds) - 1
        return self._rates[index] if 0 <= index < len(self._rates) else 0.0

    def requests_until(self, seconds: float) -> float:
        """Requests from the trace's start to a time: the integral of the rate."""
        clipped = min(max(seconds, self.start_seconds), self.end_seconds)
        index = min(bisect.bisect_right(self._edges, clipped) - 1, len(self._rates) - 1)
        return self._requests_before[index] + self._rates[index] * (clipped - self._edges[index])

    def scaled(self, factor: float) -> "RateTrace":
        """Return the same shape at `factor` times the rate."""
        return RateTrace(self._edges[:-1], (rate * factor for rate in self._rates), end_seconds=self.end_seconds)

    def steps(self, start_seconds: float, end_seconds: float) -> Iterator[Step]:
        """Steps inside a window, cut at its ends; equal neighbours are merged, time outside the trace is at rate zero."""
        edges = [start_seconds, *(edge for edge in self._edges if start_seconds < edge < end_seconds), end_seconds]
        pending = Step(start_seconds=start_seconds, end_seconds=start_seconds, rate=self.rate_at(start_seconds))
        for start, end in itertools.pairwise(edges):
            rate = self.rate_at(start)
            if rate != pending.rate:
                yield pending
                pending = Step(start_seconds=start, end_seconds=end, rate=rate)
            else:
                pending = Step(start_seconds=pending.start_seconds, end_seconds=end, rate=rate)
        yield pending

    def _accumulated(self) -> Iterator[float]:
        total = 0.0
        for start, end, rate in zip(self._edges, self._edges[1:], self._rates, strict=False):
            yield total
            total += rate * (end - start)

    def _check(self) -> None:
        if len(self._edges) != len(self._rates) + 1:
            raise TraceError("each time of a trace needs one rate")
        if any(end <= start for start, end in zip(self._edges, self._edges[1:], strict=False)):
            raise TraceError("the times of a trace must ascend")
        if any(not 0 <= rate < float("inf") for rate in self._rates):
            raise TraceError("the rates of a trace must be finite and not negative")


def daily_jump(*, days: int, jump_seconds: float, busy_seconds: float, rate: float) -> RateTrace:
    """Return a trace that rests at zero and holds `rate` for `busy_seconds` from `jump_seconds` after each day's start."""
    if not 0 < jump_seconds < jump_seconds + busy_seconds < DAY_SECONDS:
        raise TraceError("the busy time must lie inside the day: change jump_seconds or busy_seconds")
    starts = [day * DAY_SECONDS + at for day in range(days) for at in (0.0, jump_seconds, jump_seconds + busy_seconds)]
    return RateTrace(starts, [0.0, rate, 0.0] * days, end_seconds=days * DAY_SECONDS)


def _number(row: dict[str, str], column: str) -> float:
    try:
        return float(row[column])
    except (KeyError, TypeError, ValueError) as error:
        raise TraceError(f"the trace needs a number in column {column!r}, not {row.get(column)!r}") from error
