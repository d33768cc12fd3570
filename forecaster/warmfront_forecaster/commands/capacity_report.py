"""What `warmfront capacity` shows: assumptions, table, JSON, plot."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warmfront_forecaster.capacity.fluid import LengthMoments
from warmfront_forecaster.capacity.safe_load import SafeLoad, Service

HEADER = "replicas   kube-proxy: safe load   requests/s   router: safe load   requests/s   a router saves"


@dataclass(frozen=True, kw_only=True)
class Row:
    """Safe loads of one fleet size under both routings."""

    random: SafeLoad
    least_in_flight: SafeLoad

    @property
    def saved_share(self) -> float | None:
        """Share of the replicas that a router saves at the same traffic; None where random routing is safe at no load."""
        if self.random.load == 0 or self.least_in_flight.load == 0:
            return None
        return max(0.0, 1 - self.random.load / self.least_in_flight.load)


def assumptions(service: Service) -> list[str]:
    """Everything that the table rests on."""
    return [f"{name:<13}{words}" for name, words in _assumed(service).items()] + [""]


def _assumed(service: Service) -> dict[str, str]:
    model, limits, goal, fluid = service.model, service.limits, service.objectives, service.fluid
    moments = LengthMoments.of(service.lengths)
    per_unit = {
        "sequences": model.per_sequence_seconds,
        "KV tokens": model.per_kv_token_seconds,
        "prompt tokens": model.per_prefill_token_seconds,
    }
    return {
        "step": " + ".join([f"{_ms(model.base_seconds)}", *(f"{_ms(cost)} x {unit}" for unit, cost in per_unit.items())]),
        "engine": f"max-num-seqs {limits.max_num_seqs}, max-num-batched-tokens {limits.max_num_batched_tokens}, "
        f"KV cache {limits.kv_blocks * limits.block_tokens} tokens",
        "requests": f"{moments.prompt_tokens:.0f} prompt and {moments.output_tokens:.0f} output tokens on average, "
        f"dispersion {service.dispersion:g}, prefix cache hits not counted",
        "objectives": f"TTFT {_ms(goal.ttft_seconds)}, ITL {_ms(goal.itl_seconds)}, met by {_target(service)} of the requests",
        "one replica": f"at most {fluid.requests_per_second:.2f} requests/s at a batch of {fluid.batch:.0f}, bound by "
        + (fluid.bottleneck if fluid.meets_itl else "an ITL objective below the step of a single sequence: unattainable"),
    }


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.9f}".rstrip("0").rstrip(".") + " ms"


def _target(service: Service) -> str:
    return f"{100 * (1 - service.objectives.miss_share):g} %"


def lines(row: Row, service: Service, *, first: bool) -> list[str]:
    """One row of the table, under its header if it is the first."""
    cells = [f"{row.random.replicas:>8}"]
    for found, width in ((row.random, 21), (row.least_in_flight, 17)):
        rate = found.load * found.replicas * service.fluid.requests_per_second
        cells += [f"{found.load:>{width}.2f}", f"{rate:>10.2f}"]
    saved = "-" if row.saved_share is None else f"{100 * row.saved_share:.0f} %"
    head = [*_unattainable(row, service), HEADER] if first else []
    return [*head, "   ".join([*cells, f"{saved:>14}"])]


def document(service: Service, rows: Sequence[Row]) -> dict[str, Any]:
    """The same for programs. Times in seconds, loads as shares of the fluid throughput."""
    fluid = service.fluid
    return {
        "fluid": {
            "requestsPerSecond": fluid.requests_per_second,
            "batch": fluid.batch,
            "bottleneck": fluid.bottleneck,
            "meetsItl": fluid.meets_itl,
        },
        "dispersion": service.dispersion,
        "unattainableShare": rows[0].random.unattainable_share,
        "rows": [
            {
                "replicas": row.random.replicas,
                "random": _found(row.random, fluid.requests_per_second),
                "leastInFlight": _found(row.least_in_flight, fluid.requests_per_second),
                "routerSavesShare": row.saved_share,
            }
            for row in rows
        ],
    }


def plot(rows: Sequence[Row], service: Service, path: Path) -> None:
    """Safe load against replicas, one line per routing."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - half a second that the table does not need

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    replicas = [row.random.replicas for row in rows]
    axes.plot(replicas, [100 * row.random.load for row in rows], "o-", label="kube-proxy (any pod)")
    axes.plot(replicas, [100 * row.least_in_flight.load for row in rows], "s-", label="router (fewest in flight)")
    goal = service.objectives
    axes.set(
        xlabel="replicas",
        ylabel="safe load, % of the fluid throughput",
        ylim=(0, 100),
        xscale="log",
        xticks=replicas,
        title=f"TTFT {_ms(goal.ttft_seconds)}, ITL {_ms(goal.itl_seconds)}, {_target(service)} of requests, "
        f"dispersion {service.dispersion:g}",
    )
    axes.set_xticks(replicas, [str(n) for n in replicas])
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=150)


def _found(found: SafeLoad, fluid: float) -> dict[str, float]:
    return {
        "safeLoad": found.load,
        "requestsPerSecond": found.load * found.replicas * fluid,
        "missShare": found.misses.share,
        "missStandardError": found.misses.standard_error,
        "simulatedRequests": found.misses.requests,
    }


def _unattainable(row: Row, service: Service) -> list[str]:
    share, allowed = row.random.unattainable_share, service.objectives.miss_share
    if share == 0:
        return []
    verdict = "more than the target allows: no number of replicas meets it" if share > allowed else "counted in no miss share"
    return [f"{100 * share:.2f} % of the requests are too long for the objectives even on an idle replica; {verdict}", ""]
