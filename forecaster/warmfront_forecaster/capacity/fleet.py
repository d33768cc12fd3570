"""A fleet of token-level engines that serves one stream of requests."""

from enum import IntEnum
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from warmfront_forecaster.capacity import kernel
from warmfront_forecaster.capacity.step_model import StepModel
from warmfront_forecaster.capacity.token_engine import EngineLimits
from warmfront_forecaster.capacity.workload import Workload

_UNBOUNDED: Final = 2**62


class Routing(IntEnum):
    """How a request finds its replica: any (kube-proxy), or the one with the fewest in flight (a router sees them all)."""

    RANDOM = kernel.RANDOM
    LEAST_IN_FLIGHT = kernel.LEAST_IN_FLIGHT


class Fleet:
    """Replicas under a workload; time passes as requests arrive.

    Replica k takes requests from `opens_seconds[k]` until `closes_seconds[k]`, then finishes what it has. Both may be changed
    between two calls of `serve`, for times that have not come. A request that finds no open replica, or `most_waiting` in the
    queue of the one it was given, is shed.
    """

    def __init__(
        self,
        *,
        limits: EngineLimits,
        model: StepModel,
        workload: Workload,
        replicas: int,
        routing: Routing,
        most_waiting: int | None = None,
    ) -> None:
        """Start with all `replicas` idle, open for ever.

        Raises:
            ValueError: No replica, or a request that needs more KV than an engine has.
        """
        if replicas < 1:
            raise ValueError(f"fleet: at least one replica is needed, got {replicas}")
        lengths = workload.lengths
        peak = int((lengths.prompt_tokens + lengths.output_tokens).max()) - 1
        if limits.blocks(peak) > limits.kv_blocks:
            capacity = limits.kv_blocks * limits.block_tokens
            raise ValueError(f"fleet: a request needs {peak} KV tokens, the engine holds {capacity}")
        self._rules = _rules(limits, model, routing, most_waiting)
        self._state = _state(limits, workload, replicas)
        self._arrived = 0

    @property
    def opens_seconds(self) -> NDArray[np.float64]:
        """When each replica begins to take requests; writable."""
        return _column(self._state.engines, "opens")

    @property
    def closes_seconds(self) -> NDArray[np.float64]:
        """When each replica stops taking requests; writable."""
        return _column(self._state.engines, "closes")

    @property
    def replica(self) -> NDArray[np.int32]:
        """Which replica each request went to; -1: not arrived, or shed."""
        return _column(self._state.requests, "replica")

    @property
    def first_token_seconds(self) -> NDArray[np.float64]:
        """When the first token of each request was out; NaN: not yet."""
        return _column(self._state.requests, "first")

    @property
    def last_token_seconds(self) -> NDArray[np.float64]:
        """When the last token of each request was out; NaN: not yet."""
        return _column(self._state.requests, "last")

    @property
    def preemptions(self) -> NDArray[np.int32]:
        """How often each request lost its KV."""
        return _column(self._state.requests, "preemptions")

    @property
    def arrived(self) -> int:
        """Requests that have arrived so far."""
        return self._arrived

    def serve(self, requests: int) -> None:
        """Let the next `requests` arrive, and run replicas up to the last of them."""
        end = min(self._arrived + requests, len(self._state.requests))
        kernel.feed(self._rules, self._state, self._arrived, end)
        self._arrived = end

    def run_until(self, seconds: float) -> None:
        """Run every step that begins before a time, with no further arrivals; infinity: until all is served."""
        kernel.run_until(self._rules, self._state, seconds)


def _column(rows: NDArray[np.void], name: str) -> NDArray[Any]:
    column: NDArray[Any] = rows[name]
    return column


def _rules(limits: EngineLimits, model: StepModel, routing: Routing, most_waiting: int | None) -> kernel.Rules:
    return kernel.Rules(
        max_num_seqs=limits.max_num_seqs,
        max_num_batched_tokens=limits.max_num_batched_tokens,
        block_tokens=limits.block_tokens,
        most_waiting=_UNBOUNDED if most_waiting is None else most_waiting,
        routing=int(routing),
        base=float(model.base_seconds),
        per_sequence=float(model.per_sequence_seconds),
        per_kv_token=float(model.per_kv_token_seconds),
        per_prefill_token=float(model.per_prefill_token_seconds),
    )


def _state(limits: EngineLimits, workload: Workload, replicas: int) -> kernel.State:
    longest_output = int(workload.lengths.output_tokens.max())
    return kernel.State(
        requests=_requests(workload),
        engines=_engines(limits, replicas),
        phases=np.zeros((replicas, limits.block_tokens), np.int64),
        rings=np.full((replicas, longest_output), kernel.NOBODY, np.int64),
        ready=np.zeros((replicas, limits.max_num_seqs), np.int64),
    )


def _engines(limits: EngineLimits, replicas: int) -> NDArray[np.void]:
    engines = np.zeros(replicas, kernel.ENGINE)
    engines["opens"], engines["closes"] = -np.inf, np.inf
    engines["free_blocks"] = limits.kv_blocks
    for link in ("partial", "head", "tail", "newest"):
        engines[link] = kernel.NOBODY
    return engines


def _requests(workload: Workload) -> NDArray[np.void]:
    requests = np.zeros(len(workload), kernel.REQUEST)
    requests["arrival"], requests["draw"] = workload.arrival_seconds, workload.draws
    requests["prompt"], requests["output"] = workload.lengths.prompt_tokens, workload.lengths.output_tokens
    requests["first"] = requests["last"] = np.nan
    requests["replica"] = kernel.NOBODY
    return requests
