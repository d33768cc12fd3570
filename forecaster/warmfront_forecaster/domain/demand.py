"""From what Prometheus holds to demand in replica-equivalents, with today's capacity."""

from dataclasses import dataclass

import numpy as np

from warmfront_forecaster.domain.series import STEP_SECONDS, FloatArray, Series, fill_from_neighbours


@dataclass(frozen=True, kw_only=True, eq=False)
class Traffic:
    """What was asked of a service, on the grid of `Series`, all arrays equally long. NaN: not measured.

    `arrivals` in requests per second; `prompt_tokens` and `output_tokens` are means per served request, which are NaN
    where none was served.
    """

    start: int
    arrivals: FloatArray
    prompt_tokens: FloatArray
    output_tokens: FloatArray


@dataclass(frozen=True, kw_only=True)
class ReplicaRates:
    """What one replica does, tokens per second."""

    prefill_tokens_per_second: float
    decode_tokens_per_second: float


def demand(traffic: Traffic, rates: ReplicaRates) -> Series:
    """Replica-equivalents: d = arrivals/s * (prompt tokens / prefill rate + output tokens / decode rate).

    History holds tokens and is turned into replicas with *today's* rates: a better estimate of what a replica does must
    not look like a change of demand. No arrivals are no demand, whatever the tokens. Where nothing was served, requests
    are taken to be as large as the ones served just before (at the start of history: just after).
    """
    prompt = fill_from_neighbours(traffic.prompt_tokens)
    output = fill_from_neighbours(traffic.output_tokens)
    per_request = prompt / rates.prefill_tokens_per_second + output / rates.decode_tokens_per_second
    values = np.where(traffic.arrivals == 0, 0.0, traffic.arrivals * per_request)
    return Series(start=traffic.start, values=values)


def blank(start: int, end: int) -> Traffic:
    """Nothing measured on the grid from `start` to `end`, both included (Unix seconds)."""
    steps = max(0, (end - start) // STEP_SECONDS + 1)
    return Traffic(start=start, arrivals=_missing(steps), prompt_tokens=_missing(steps), output_tokens=_missing(steps))


def join(known: Traffic, newer: Traffic, keep_seconds: float) -> Traffic:
    """`known` continued by `newer`, whose measurements count where both have some; the oldest dropped beyond `keep_seconds`."""
    end = max(_end(known), _end(newer))
    start = max(min(known.start, newer.start), end - int(keep_seconds // STEP_SECONDS) * STEP_SECONDS)
    joined = blank(start, end)
    for part in (known, newer):
        for name in ("arrivals", "prompt_tokens", "output_tokens"):
            _lay(getattr(joined, name), getattr(part, name), (part.start - start) // STEP_SECONDS)
    return joined


def _end(traffic: Traffic) -> int:
    return traffic.start + (len(traffic.arrivals) - 1) * STEP_SECONDS


def _missing(steps: int) -> FloatArray:
    return np.full(steps, np.nan)


def _lay(onto: FloatArray, values: FloatArray, at: int) -> None:
    """Write the measured values from index `at` on; what falls outside is dropped."""
    skip = max(0, -at)
    part = values[skip : skip + max(0, len(onto) - max(0, at))]
    target = onto[max(0, at) : max(0, at) + len(part)]
    np.copyto(target, part, where=np.isfinite(part))
