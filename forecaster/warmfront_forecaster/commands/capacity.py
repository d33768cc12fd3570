"""`warmfront capacity`: how much of a replica is usable, and what a router would save."""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from warmfront_forecaster.capacity.fleet import Routing
from warmfront_forecaster.capacity.safe_load import Objectives, SafeLoad, Service, safe_load
from warmfront_forecaster.capacity.step_model import StepModel
from warmfront_forecaster.capacity.token_engine import EngineLimits
from warmfront_forecaster.capacity.workload import Lengths
from warmfront_forecaster.commands import arguments, capacity_report, lengths
from warmfront_forecaster.commands.capacity_report import Row

MILLI: Final = 1e-3
BLOCK_TOKENS: Final = 16  # vLLM's default

EPILOG: Final = """\
The four step figures describe one engine step: base + per-sequence x decoding sequences + per-kv-token x KV tokens attended to
+ per-prefill-token x prompt tokens. A request misses when its TTFT or its mean ITL is over the objective; requests that an idle
replica could not serve in time either are counted apart.

Example, an 8B model on one H100 (orders of magnitude, not measured here):
  warmfront capacity --base-ms 8 --per-sequence-ms 0.03 --per-kv-token-ms 0.00004 --per-prefill-token-ms 0.04 \\
    --kv-tokens 400000 --prompt-tokens 800 --prompt-cv 1.2 --output-tokens 250 --ttft-ms 500 --itl-ms 50 --dispersion 3
"""


def main(argv: Sequence[str]) -> int:
    """Print the table; 2 when an argument is wrong."""
    parser = _parser()
    given = parser.parse_args(argv)
    try:
        service = _service(given)
    except ValueError as error:
        print(f"warmfront capacity: {error}", file=sys.stderr)
        return 2
    if given.format == "table":
        print("\n".join(capacity_report.assumptions(service)))
    print("compiling the engine model, about 10 s ...", file=sys.stderr)
    rows: list[Row] = []
    for row in _rows(service, given.replicas, seed=given.seed):
        if given.format == "table":
            print("\n".join(capacity_report.lines(row, service, first=not rows)), flush=True)
        rows.append(row)
    if given.format == "json":
        print(json.dumps(capacity_report.document(service, rows), indent=2))
    if given.plot:
        capacity_report.plot(rows, service, given.plot)
        print(f"wrote {given.plot}", file=sys.stderr)
    return 0


def _rows(service: Service, replicas: Sequence[int], *, seed: int) -> Iterator[Row]:
    for n in replicas:
        random, least = (_solved(service, n, routing, seed) for routing in (Routing.RANDOM, Routing.LEAST_IN_FLIGHT))
        yield Row(random=random, least_in_flight=least)


def _solved(service: Service, replicas: int, routing: Routing, seed: int) -> SafeLoad:
    return safe_load(replace(service, routing=routing), replicas=replicas, seed=seed)


def _service(given: argparse.Namespace) -> Service:
    most_tokens = min(given.max_model_len, given.kv_tokens // BLOCK_TOKENS * BLOCK_TOKENS)
    drawn = _lengths(given, most_tokens)  # first: it says best what is wrong with a cache that holds nothing
    return Service(
        model=StepModel(
            base_seconds=given.base_ms * MILLI,
            per_sequence_seconds=given.per_sequence_ms * MILLI,
            per_kv_token_seconds=given.per_kv_token_ms * MILLI,
            per_prefill_token_seconds=given.per_prefill_token_ms * MILLI,
        ),
        limits=EngineLimits(
            max_num_seqs=given.max_num_seqs,
            max_num_batched_tokens=given.max_num_batched_tokens,
            kv_blocks=given.kv_tokens // BLOCK_TOKENS,
            block_tokens=BLOCK_TOKENS,
        ),
        lengths=drawn,
        dispersion=given.dispersion,
        routing=Routing.RANDOM,
        objectives=Objectives(
            ttft_seconds=given.ttft_ms * MILLI, itl_seconds=given.itl_ms * MILLI, miss_share=1 - given.target / 100
        ),
    )


def _lengths(given: argparse.Namespace, most_tokens: int) -> Lengths:
    if most_tokens < 2:  # noqa: PLR2004 - a prompt and an output
        raise ValueError(f"--kv-tokens {given.kv_tokens} and --max-model-len {given.max_model_len} hold no request")
    if given.lengths:
        return lengths.read(given.lengths, most_tokens=most_tokens)
    if given.prompt_tokens is None or given.output_tokens is None:
        raise ValueError("lengths are missing: give --lengths FILE, or both --prompt-tokens and --output-tokens")
    return lengths.drawn(
        prompt_tokens=given.prompt_tokens,
        prompt_cv=given.prompt_cv,
        output_tokens=given.output_tokens,
        output_cv=given.output_cv,
        most_tokens=most_tokens,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="warmfront capacity",
        description=__doc__.partition(": ")[2],
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    engine = parser.add_argument_group("the engine")
    for name, kind, default, words in (
        ("base-ms", arguments.positive, None, "ms of a step, whatever is in it"),
        ("per-sequence-ms", arguments.not_negative, 0.0, "ms per decoding sequence"),
        ("per-kv-token-ms", arguments.not_negative, 0.0, "ms per KV token attended to"),
        ("per-prefill-token-ms", arguments.not_negative, 0.0, "ms per prompt token computed"),
        ("kv-tokens", arguments.count, None, "tokens that the KV cache holds (vLLM prints it when it starts)"),
        ("max-num-seqs", arguments.count, 256, "vLLM's --max-num-seqs"),
        ("max-num-batched-tokens", arguments.count, 2048, "vLLM's --max-num-batched-tokens"),
        ("max-model-len", arguments.count, 8192, "vLLM's --max-model-len; longer requests are cut"),
    ):
        _add(engine, name, kind, default, words)
    traffic = parser.add_argument_group("the traffic")
    for name, kind, default, words in (
        ("prompt-cv", arguments.not_negative, 1.0, "coefficient of variation of prompt lengths"),
        ("output-cv", arguments.not_negative, 1.0, "coefficient of variation of output lengths"),
        ("dispersion", arguments.positive, 1.5, "burstiness: variance / mean of arrivals per second; 1 is Poisson"),
    ):
        _add(traffic, name, kind, default, words)
    traffic.add_argument("--prompt-tokens", type=arguments.positive, metavar="N", help="mean prompt length")
    traffic.add_argument("--output-tokens", type=arguments.positive, metavar="N", help="mean output length")
    traffic.add_argument("--lengths", type=Path, metavar="FILE", help="instead: a CSV of recorded prompt_tokens,output_tokens")
    wanted = parser.add_argument_group("what is wanted")
    for name, kind, default, words in (
        ("ttft-ms", arguments.positive, None, "objective for the time to first token"),
        ("itl-ms", arguments.positive, None, "objective for a request's mean inter-token latency"),
        ("target", arguments.percent, 99.0, "per cent of the requests that must meet both"),
        ("seed", arguments.count, 1, "of the simulated traffic"),
    ):
        _add(wanted, name, kind, default, words)
    wanted.add_argument(
        "--replicas", type=arguments.counts, default=[1, 2, 4, 8, 16], metavar="N,N,...", help="fleets (1,2,4,8,16)"
    )
    wanted.add_argument("--format", choices=("table", "json"), default="table", help="of what is printed (table)")
    wanted.add_argument("--plot", type=arguments.picture, metavar="FILE", help="draw it too: a .png, .svg or .pdf")
    return parser


def _add(group: "argparse._ArgumentGroup", name: str, kind: object, default: object, words: str) -> None:
    suffix = "" if default is None else f" ({default:g})"
    group.add_argument(f"--{name}", type=kind, default=default, required=default is None, metavar="N", help=words + suffix)  # type: ignore[arg-type]
