"""How much of its fluid throughput a fleet may carry while the asked share of requests meets the objectives."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from warmfront_forecaster.capacity.arrivals import arrivals
from warmfront_forecaster.capacity.fleet import Fleet, Routing
from warmfront_forecaster.capacity.fluid import FluidRate, LengthMoments, fluid_rate
from warmfront_forecaster.capacity.step_model import StepModel
from warmfront_forecaster.capacity.token_engine import EngineLimits
from warmfront_forecaster.capacity.workload import Lengths, Workload

RESOLUTION: Final = 1 / 256  # of a safe load: far below what lengths and dispersion are known to
HIGHEST: Final = 0.98  # no load beyond it is called safe: lengths that move by 2 % would overload it
RELAXATIONS: Final = 10  # that a run lasts; a queue forgets its beginning within about D / (1 - load)^2 requests
REQUESTS_PER_REPLICA: Final = 8_000  # at first: many times what a full batch holds, so that the beginning does not tell
MOST_MISSES: Final = 4_000  # expected at the target: where a close call ends
WANTED_ERROR: Final = 0.08  # standard error of a miss share that is a close call, as a share of the target
SETTLING_SHARE: Final = 0.1  # of the requests, before the ones that count: the fleet begins empty
BATCHES: Final = 32  # for the standard error: misses come in bursts, so requests are no independent draws
CLEAR: Final = 3.0  # standard errors from the target at which a verdict needs no more requests


@dataclass(frozen=True, kw_only=True)
class Objectives:
    """A request misses when its TTFT or its mean ITL is above these; `miss_share` of the requests may."""

    ttft_seconds: float
    itl_seconds: float
    miss_share: float

    def __post_init__(self) -> None:
        if not (self.ttft_seconds > 0 and self.itl_seconds > 0):
            raise ValueError(f"objectives: TTFT and ITL must be above 0, got {self.ttft_seconds} and {self.itl_seconds}")
        if not 0 < self.miss_share < 1:
            raise ValueError(f"objectives: the share that may miss must lie between 0 and 1, got {self.miss_share}")


@dataclass(frozen=True, kw_only=True, eq=False)
class Service:
    """All that decides how much of a replica is usable. `lengths` is a sample that requests are drawn from."""

    model: StepModel
    limits: EngineLimits
    lengths: Lengths
    dispersion: float
    routing: Routing
    objectives: Objectives

    @property
    def fluid(self) -> FluidRate:
        """The fluid throughput of one replica: what a load is a share of."""
        return fluid_rate(self.model, self.limits, LengthMoments.of(self.lengths), self.objectives.itl_seconds)


@dataclass(frozen=True, kw_only=True)
class Misses:
    """Share of the attainable requests that missed, its standard error, and how many of them there were."""

    share: float
    standard_error: float
    requests: int


@dataclass(frozen=True, kw_only=True)
class SafeLoad:
    """The largest safe load of a fleet, as a share of its fluid throughput; 0: not even next to none is safe.

    `unattainable_share` of the requests would miss on an idle replica too; no number of replicas helps them, so they are in no
    miss share.
    """

    replicas: int
    load: float
    misses: Misses
    unattainable_share: float


def attainable(service: Service, lengths: Lengths) -> NDArray[np.bool_]:
    """Which requests an idle replica serves within the objectives, shape (n,)."""
    model, chunk = service.model, service.limits.max_num_batched_tokens
    prompt, output = lengths.prompt_tokens, lengths.output_tokens
    whole, rest = np.divmod(prompt, chunk)
    steps = whole + (rest > 0)
    attended = chunk * whole * (whole + 1) / 2 + np.where(rest > 0, prompt, 0)  # KV read, summed over the chunks
    ttft = model.base_seconds * steps + model.per_prefill_token_seconds * prompt + model.per_kv_token_seconds * attended
    itl = model.base_seconds + model.per_sequence_seconds + model.per_kv_token_seconds * (prompt + output / 2)
    fits: NDArray[np.bool_] = (ttft <= service.objectives.ttft_seconds) & (
        (itl <= service.objectives.itl_seconds) | (output == 1)
    )
    return fits


def misses_at(service: Service, *, replicas: int, load: float, requests: int, seed: int) -> Misses:
    """Serve `requests` at a load on the token-level model. The same seed means the same requests at any load.

    Args:
        service: what is served.
        replicas: of the fleet, all there from the start.
        load: share of the fleet's fluid throughput, above 0.
        requests: to serve, those of the settling time included.
        seed: of arrivals, lengths and routing.

    Returns:
        No misses of no requests where none is attainable.
    """
    simulated, islands = _simulated(service, replicas), replicas // _simulated(service, replicas)
    rate = load * simulated * service.fluid.requests_per_second
    work = _workload(service, rate=rate, islands=islands, requests=requests, seed=seed)
    fleet = Fleet(limits=service.limits, model=service.model, workload=work, replicas=simulated, routing=service.routing)
    fleet.serve(requests)
    fleet.run_until(float("inf"))
    return _misses(service, work, fleet)


def safe_load(service: Service, *, replicas: int, seed: int = 1) -> SafeLoad:
    """Find the largest load at which at most the asked share misses, by bisection on the token-level model.

    Each verdict stops once it is clear, and otherwise goes on until the miss share is known to WANTED_ERROR.

    Raises:
        ValueError: `replicas` below 1, or a request longer than the engine's memory.
    """
    low, high, at_low = 0.0, HIGHEST, Misses(share=0.0, standard_error=0.0, requests=0)
    while high - low > RESOLUTION:
        middle = (low + high) / 2
        found = _judged(service, replicas=replicas, load=middle, seed=seed)
        if found.share <= service.objectives.miss_share:
            low, at_low = middle, found
        else:
            high = middle
    return SafeLoad(
        replicas=replicas,
        load=low,
        misses=at_low,
        unattainable_share=1 - float(attainable(service, service.lengths).mean()),
    )


def _judged(service: Service, *, replicas: int, load: float, seed: int) -> Misses:
    target = service.objectives.miss_share
    relaxing = int(RELAXATIONS * max(1.0, service.dispersion) / (1 - load) ** 2)
    requests = max(REQUESTS_PER_REPLICA * _simulated(service, replicas), relaxing)
    most = max(requests, int(MOST_MISSES / target))
    while True:
        found = misses_at(service, replicas=replicas, load=load, requests=requests, seed=seed)
        clear = abs(found.share - target) > CLEAR * found.standard_error > 0
        if clear or requests >= most or 0 < found.standard_error <= WANTED_ERROR * target:
            return found
        requests = min(4 * requests, most)


def _simulated(service: Service, replicas: int) -> int:
    """With random routing replicas are islands that share nothing: one tells of all."""
    return 1 if service.routing is Routing.RANDOM else replicas


def _workload(service: Service, *, rate: float, islands: int, requests: int, seed: int) -> Workload:
    times, sizes, luck = (np.random.default_rng([seed, stream]) for stream in range(3))
    return Workload(
        arrival_seconds=arrivals(times, count=requests, dispersion=service.dispersion, islands=islands) / rate,
        lengths=service.lengths.take(sizes.integers(0, len(service.lengths), requests)),
        draws=luck.random(requests),
    )


def _misses(service: Service, work: Workload, fleet: Fleet) -> Misses:
    counts = attainable(service, work.lengths)
    counts[: int(SETTLING_SHARE * len(work))] = False
    missed = over_objectives(service.objectives, work, fleet)[counts]
    if not len(missed):
        return Misses(share=0.0, standard_error=0.0, requests=0)
    batches = [batch.mean() for batch in np.array_split(missed, min(BATCHES, len(missed)))]
    error = float(np.std(batches) / np.sqrt(max(1, len(batches) - 1)))
    return Misses(share=float(missed.mean()), standard_error=error, requests=len(missed))


def over_objectives(objectives: Objectives, work: Workload, fleet: Fleet) -> NDArray[np.bool_]:
    """Which requests missed: too late a first token, too slow a stream, or none at all (shed, not ended). Shape (n,)."""
    ttft = fleet.first_token_seconds - work.arrival_seconds
    streamed = fleet.last_token_seconds - fleet.first_token_seconds
    itl = streamed / np.maximum(1, work.lengths.output_tokens - 1)
    met: NDArray[np.bool_] = (ttft <= objectives.ttft_seconds) & (itl <= objectives.itl_seconds)  # NaN meets nothing
    return ~met
