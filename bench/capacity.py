"""`make bench-capacity`: does a fleet miss what was asked for, at the load that the solver called safe?

Each recorded service is solved on the lengths of three days and tried on those of the day after, with other arrivals: as it is
used, since lengths are measured again each day.
Beside it the rules that others use, a fixed 95 % and a fixed 75 % of the same fluid throughput.
"""

import os
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any, Final

import numpy as np

from bench.report import Options, Report
from bench.servegen import Client, clients
from warmfront_forecaster.capacity.fleet import Routing
from warmfront_forecaster.capacity.safe_load import Objectives, Service, misses_at, safe_load
from warmfront_forecaster.capacity.step_model import StepModel
from warmfront_forecaster.capacity.token_engine import EngineLimits
from warmfront_forecaster.capacity.workload import Lengths

# An 8B model on one H100: orders of magnitude from public profiles, not measured here.
MODEL: Final = StepModel(base_seconds=0.008, per_sequence_seconds=3e-5, per_kv_token_seconds=4e-8, per_prefill_token_seconds=4e-5)
LIMITS: Final = EngineLimits(max_num_seqs=256, max_num_batched_tokens=2048, kv_blocks=25_000)
OBJECTIVES: Final = Objectives(ttft_seconds=2.0, itl_seconds=0.05, miss_share=0.01)
MOST_TOKENS: Final = 32_768
FLOOR: Final = 0.40  # capacity.minSafeLoadPercent: below it the objectives are called unattainable
SOLVED_DAYS: Final = (7, 10)
TRIED_DAYS: Final = (10, 11)
SERVICES, REPLICAS, DISPERSIONS = 12, (1, 2, 4, 16), (1.0, 3.0, 8.0)
FIXED: Final = (0.95, 0.75)
DRAWN: Final = 50_000
TRIED_REQUESTS: Final = 400_000
GOOD: Final = (0.005, 0.013)  # what may be missed where 1 % was asked
GOAL: Final = 0.90


def main() -> None:
    """Run it, print it, write it."""
    options = Options.of(os.environ)
    report = Report(name="capacity", inputs=_inputs(options))
    services, replicas, dispersions = (3, (1, 4), (1.0, 3.0)) if options.quick else (SERVICES, REPLICAS, DISPERSIONS)
    for client in _usable(clients(options.data), services):
        solved, tried = (_service(client, days, options.seed) for days in (SOLVED_DAYS, TRIED_DAYS))
        for dispersion in dispersions:
            for n in replicas:
                report.row(
                    **_cell(
                        client.name,
                        replace(solved, dispersion=dispersion),
                        replace(tried, dispersion=dispersion),
                        n,
                        options.seed,
                    )
                )
    _judge(report)
    report.write()


def _usable(found: list[Client], count: int) -> Iterator[Client]:
    """The busiest with lengths on both sides."""
    both = [client for client in found if client.windows(*SOLVED_DAYS) and client.windows(*TRIED_DAYS)]
    yield from both[:count]


def _service(client: Client, days: tuple[int, int], seed: int) -> Service:
    pairs = client.draw(np.random.default_rng([seed, days[0]]), client.windows(*days), DRAWN)
    prompt = np.clip(pairs[:, 0], 1, MOST_TOKENS - 1)
    output = np.clip(pairs[:, 1], 1, MOST_TOKENS - prompt)
    return Service(
        model=MODEL,
        limits=LIMITS,
        lengths=Lengths(prompt_tokens=prompt, output_tokens=output),
        dispersion=1.0,
        routing=Routing.RANDOM,
        objectives=OBJECTIVES,
    )


def _cell(name: str, solved: Service, tried: Service, replicas: int, seed: int) -> dict[str, Any]:
    began = time.monotonic()
    found = safe_load(solved, replicas=replicas, seed=seed)
    seconds = time.monotonic() - began
    cell: dict[str, Any] = {
        "service": name,
        "dispersion": solved.dispersion,
        "replicas": replicas,
        "safe_load": found.load,
        "solve_seconds": seconds,
    }
    cell["missed"] = _missed(tried, replicas, found.load, seed) if found.load else None
    cell |= {f"missed_at_{100 * load:.0f}": _missed(tried, replicas, load, seed) for load in FIXED}
    return cell | {"unattainable": found.unattainable_share, "counted": found.load >= FLOOR}


def _missed(service: Service, replicas: int, load: float, seed: int) -> float:
    return misses_at(service, replicas=replicas, load=load, requests=TRIED_REQUESTS, seed=seed + 1_000).share


def _judge(report: Report) -> None:
    low, high = GOOD
    counted = [row for row in report.table if row["counted"]]
    for row in report.table:
        if not row["counted"]:
            print(f"below the floor of {FLOOR:g}, not averaged: {_named(row)}")
    if not counted:
        raise SystemExit("no cell has a safe load above the floor: nothing to judge")
    within = [low <= row["missed"] <= high for row in counted]
    report.at_least(f"share of {len(counted)} cells that miss 0.5 to 1.3 % where 1 % was asked", float(np.mean(within)), GOAL)
    worst = max(counted, key=lambda row: abs(np.log(max(row["missed"], 1e-6) / OBJECTIVES.miss_share)))
    print(f"worst: {_named(worst)}: {100 * worst['missed']:.2f} %")
    for load in FIXED:
        shares = 100 * np.array([row[f"missed_at_{100 * load:.0f}"] for row in report.table])
        print(f"a fixed {load:g} misses {shares.min():.2f} to {shares.max():.1f} %, median {np.median(shares):.1f} %")


def _named(row: dict[str, Any]) -> str:
    return f"{row['service']} dispersion {row['dispersion']:g} replicas {row['replicas']}"


def _inputs(options: Options) -> dict[str, Any]:
    return {
        "data": options.data.name,
        "quick": options.quick,
        "seed": options.seed,
        "model": asdict(MODEL),
        "limits": asdict(LIMITS),
        "objectives": asdict(OBJECTIVES),
        "solved_days": SOLVED_DAYS,
        "tried_days": TRIED_DAYS,
    }


if __name__ == "__main__":
    main()
