"""`python -m e2e.load`: constant load on one service, to look around by hand. Run it inside the cluster's network."""

import argparse
import asyncio
import sys
from pathlib import Path

from e2e.history.trace import RateTrace
from e2e.load.log import read_log, result_log
from e2e.load.player import Target, play
from e2e.load.records import LoadSummary, error_counts, summarize
from e2e.load.schedule import PlayPlan, TokenRange, plan_requests


def main() -> int:
    """Send the load, print what became of it; 1 when a request failed."""
    arguments = _parser().parse_args()
    trace = RateTrace([0.0], [arguments.rate], end_seconds=arguments.seconds)
    plan = PlayPlan(
        start_seconds=0.0,
        end_seconds=arguments.seconds,
        prompt=TokenRange(mean=arguments.prompt_tokens),
        output=TokenRange(mean=arguments.output_tokens),
    )
    target = Target(url=arguments.url.rstrip("/"), model=arguments.model)
    with result_log(arguments.log) as record:
        asyncio.run(play(plan_requests(trace, plan), target, record=record))
    return _report(arguments.log)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m e2e.load", description=__doc__)
    parser.add_argument("--url", required=True, help="base URL of the service, for example http://10.96.0.17")
    parser.add_argument("--model", required=True, help="model name that it serves")
    parser.add_argument("--rate", type=float, default=1.0, help="requests per second (Poisson)")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long")
    parser.add_argument("--prompt-tokens", type=int, default=100, help="words of each prompt")
    parser.add_argument("--output-tokens", type=int, default=40, help="tokens of each answer")
    parser.add_argument("--log", type=Path, default=Path("build/load.jsonl"), help="result log, one JSON line per request")
    return parser


def _report(log: Path) -> int:
    records = read_log(log)
    print(summary_line(summarize(records)))
    for error, count in error_counts(records).items():
        print(f"{count} x {error}")
    print(f"one line per request: {log}")
    return int(any(record.failed for record in records))


def summary_line(load: LoadSummary) -> str:
    """Return the figures of a load in words."""
    p50, p95, whole = map(_seconds, (load.ttft_p50_seconds, load.ttft_p95_seconds, load.duration_p95_seconds))
    sent = f"{load.sent} requests sent, {load.failed} failed"
    return f"{sent}; first token after {p50} (p50), {p95} (p95); whole answer after {whole} (p95)"


def _seconds(seconds: float | None) -> str:
    return "unknown" if seconds is None else f"{seconds:.2f} s"


if __name__ == "__main__":
    sys.exit(main())
