"""When requests are sent and how long they are: fixed before the first one goes out (open loop). Pure."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from e2e.history.trace import RateTrace


class Spacing(StrEnum):
    """How arrivals lie inside a step of constant rate."""

    POISSON = "poisson"
    EVEN = "even"


@dataclass(frozen=True, kw_only=True)
class TokenRange:
    """Lengths drawn uniformly from `mean - spread` to `mean + spread` tokens, so that their mean is exactly known."""

    mean: int
    spread: int = 0

    def draw(self, rng: random.Random) -> int:
        """Return one length, at least one token."""
        return max(1, self.mean + rng.randint(-self.spread, self.spread))


@dataclass(frozen=True, kw_only=True)
class PlannedRequest:
    """A request to send `at_seconds` after the start of the play."""

    number: int
    at_seconds: float
    prompt_tokens: int
    output_tokens: int


@dataclass(frozen=True, kw_only=True)
class PlayPlan:
    """Which part of a trace is played, and how. Trace times in seconds; the rate is played as it is (scale it before)."""

    start_seconds: float
    end_seconds: float
    prompt: TokenRange
    output: TokenRange
    spacing: Spacing = Spacing.POISSON
    seed: int = 1
    max_requests: int = 20_000


def plan_requests(trace: RateTrace, plan: PlayPlan) -> list[PlannedRequest]:
    """Return every request of a play in order of time; the same seed gives the same list.

    A Poisson process of varying rate is the unit-rate process with its time warped by the inverse of the
    cumulative rate (Cinlar, Introduction to Stochastic Processes, 1975, ch. 4.7); even spacing is the same warp
    of 0.5, 1.5, 2.5, ...
    """
    rng = random.Random(plan.seed)  # noqa: S311 - load, not secrets
    marks = _unit_marks(plan.spacing, rng)
    requests: list[PlannedRequest] = []
    for at in _warped(trace, plan, marks):
        if len(requests) == plan.max_requests:
            break
        prompt, output = plan.prompt.draw(rng), plan.output.draw(rng)
        requests.append(PlannedRequest(number=len(requests), at_seconds=at, prompt_tokens=prompt, output_tokens=output))
    return requests


def _unit_marks(spacing: Spacing, rng: random.Random) -> Iterator[float]:
    mark = -0.5 if spacing is Spacing.EVEN else 0.0
    while True:
        mark += 1.0 if spacing is Spacing.EVEN else rng.expovariate(1.0)
        yield mark


def _warped(trace: RateTrace, plan: PlayPlan, marks: Iterator[float]) -> Iterator[float]:
    """Yield the play times at which the cumulative rate reaches each mark."""
    before, mark = 0.0, next(marks)
    for step in trace.steps(plan.start_seconds, plan.end_seconds):
        inside = step.rate * (step.end_seconds - step.start_seconds)
        while mark < before + inside:
            yield step.start_seconds - plan.start_seconds + (mark - before) / step.rate
            mark = next(marks)
        before += inside
