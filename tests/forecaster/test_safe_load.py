"""Safe load: held against closed forms, against the engine itself, and against days that the solver did not see."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from warmfront_forecaster.capacity.fleet import Fleet, Routing
from warmfront_forecaster.capacity.safe_load import Objectives, Service, attainable, misses_at, over_objectives, safe_load
from warmfront_forecaster.capacity.step_model import StepModel
from warmfront_forecaster.capacity.token_engine import EngineLimits
from warmfront_forecaster.capacity.workload import Lengths, Workload

LOOSE = 1e3


def lengths(prompt: float, output: float) -> Lengths:
    rng = np.random.default_rng(7)
    return Lengths(
        prompt_tokens=np.clip(rng.gamma(1.0, prompt, 20_000), 8, 6_000).astype(np.int64),
        output_tokens=np.clip(rng.gamma(1.0, output, 20_000), 2, 2_000).astype(np.int64),
    )


CHAT = Service(
    model=StepModel(base_seconds=0.008, per_sequence_seconds=3e-5, per_kv_token_seconds=4e-8, per_prefill_token_seconds=4e-5),
    limits=EngineLimits(max_num_seqs=256, max_num_batched_tokens=2048, kv_blocks=30_000),
    lengths=lengths(800, 250),
    dispersion=3.0,
    routing=Routing.RANDOM,
    objectives=Objectives(ttft_seconds=0.5, itl_seconds=0.05, miss_share=0.01),
)


def prefill_only(*, ttft_steps: float) -> Service:
    """One prompt a step, one token each: a queue with deterministic service of 0.1 s."""
    return Service(
        model=StepModel(base_seconds=0.1),
        limits=EngineLimits(max_num_seqs=1, max_num_batched_tokens=32, kv_blocks=64),
        lengths=Lengths(prompt_tokens=np.array([32]), output_tokens=np.array([1])),
        dispersion=1.0,
        routing=Routing.RANDOM,
        objectives=Objectives(ttft_seconds=0.1 * ttft_steps, itl_seconds=LOOSE, miss_share=0.05),
    )


def waits_longer_md1(rho: float, waited: float) -> float:
    """P(W > t) of M/D/1, t in service times (Erlang 1909): 1 - (1-rho) sum_k (-rho (t-k))^k / k! e^(rho (t-k))."""
    terms = ((-rho * (waited - k)) ** k / math.factorial(k) * math.exp(rho * (waited - k)) for k in range(int(waited) + 1))
    return 1 - (1 - rho) * sum(terms)


@pytest.mark.parametrize("load", [0.3, 0.6, 0.8])
@pytest.mark.parametrize("ttft_steps", [1.5, 3.5, 6.25])
def test_one_sequence_at_a_time_waits_as_in_m_d_1(load: float, ttft_steps: float) -> None:
    found = misses_at(prefill_only(ttft_steps=ttft_steps), replicas=1, load=load, requests=400_000, seed=2)
    expected = waits_longer_md1(load, ttft_steps - 1)
    assert found.share == pytest.approx(expected, abs=4 * found.standard_error + 1e-5)
    assert found.standard_error < 0.1 * expected + 1e-4


def erlang_c(servers: int, offered: float) -> float:
    """Probability of waiting in M/M/c."""
    last = offered**servers / math.factorial(servers) * servers / (servers - offered)
    return last / (sum(offered**k / math.factorial(k) for k in range(servers)) + last)


@pytest.mark.parametrize("load", [0.5, 0.7, 0.85])
@pytest.mark.parametrize("servers", [2, 8])
def test_a_bounded_batch_with_a_constant_step_waits_as_in_m_m_c(load: float, servers: int) -> None:
    outputs = np.random.default_rng(1).geometric(1 / 200, 200_000)
    mean = float(outputs.mean()) * 0.01
    service = Service(
        model=StepModel(base_seconds=0.01),
        limits=EngineLimits(max_num_seqs=servers, max_num_batched_tokens=1_024, kv_blocks=100_000),
        lengths=Lengths(prompt_tokens=np.full(len(outputs), 8), output_tokens=outputs.astype(np.int64)),
        dispersion=1.0,
        routing=Routing.RANDOM,
        objectives=Objectives(ttft_seconds=0.4 * mean, itl_seconds=LOOSE, miss_share=0.01),
    )
    found = misses_at(service, replicas=1, load=load, requests=40_000 * servers, seed=2)
    expected = erlang_c(servers, load * servers) * math.exp(-servers * (1 - load) * 0.4)
    assert found.share == pytest.approx(expected, rel=0.04, abs=4 * found.standard_error)


def test_the_safe_load_of_m_d_1_is_where_the_closed_form_misses_what_is_asked() -> None:
    found = safe_load(prefill_only(ttft_steps=4.0), replicas=1)
    assert waits_longer_md1(found.load, 3.0) == pytest.approx(0.05, rel=0.12)


@pytest.mark.parametrize(("routing", "replicas"), [(Routing.RANDOM, 1), (Routing.RANDOM, 8), (Routing.LEAST_IN_FLIGHT, 4)])
def test_other_days_miss_about_what_is_asked_at_the_solved_load(routing: Routing, replicas: int) -> None:
    service = replace(CHAT, routing=routing)
    solved = safe_load(service, replicas=replicas)
    other = misses_at(service, replicas=replicas, load=solved.load, requests=400_000, seed=99)
    assert other.share == pytest.approx(0.01, rel=0.5)


def test_the_safe_load_is_never_higher_for_a_harder_task() -> None:
    def load(service: Service, replicas: int = 1) -> float:
        return safe_load(service, replicas=replicas).load

    base = load(CHAT)
    assert load(replace(CHAT, dispersion=8.0)) < base
    assert load(replace(CHAT, objectives=replace(CHAT.objectives, ttft_seconds=0.3))) < base
    assert load(replace(CHAT, objectives=replace(CHAT.objectives, miss_share=0.05))) > base
    assert load(CHAT, 16) > base  # a pod behind random routing sees smoother arrivals than the service
    assert load(replace(CHAT, routing=Routing.LEAST_IN_FLIGHT), 4) > load(CHAT, 4)


def test_one_replica_has_no_routing() -> None:
    least = safe_load(replace(CHAT, routing=Routing.LEAST_IN_FLIGHT), replicas=1)
    assert least == safe_load(CHAT, replicas=1)


def test_bursts_that_an_idle_replica_cannot_take_leave_no_safe_load() -> None:
    found = safe_load(replace(CHAT, dispersion=60.0), replicas=1)
    assert (found.load, found.misses.requests) == (0.0, 0)


def test_requests_that_no_replica_serves_in_time_are_counted_apart() -> None:
    mixed = Lengths(prompt_tokens=np.array([100] * 24 + [4_800]), output_tokens=np.full(25, 20))
    strict = replace(CHAT, lengths=mixed, objectives=Objectives(ttft_seconds=0.2, itl_seconds=0.05, miss_share=0.05))
    found = safe_load(strict, replicas=1)
    assert found.unattainable_share == pytest.approx(1 / 25)
    assert found.load > 0.1  # 4 % that miss at any load would leave nearly nothing of the 5 %
    all_too_long = replace(strict, lengths=mixed.take(np.array([24])))
    assert misses_at(all_too_long, replicas=1, load=0.5, requests=100, seed=1).requests == 0


@settings(max_examples=200, deadline=None)
@given(
    prompt=st.integers(1, 700),
    output=st.integers(1, 60),
    chunk=st.integers(16, 200),
    ttft=st.floats(0.01, 2.0),
    itl=st.floats(0.01, 0.05),
)
def test_attainable_is_what_an_idle_engine_attains(prompt: int, output: int, chunk: int, ttft: float, itl: float) -> None:
    one = Lengths(prompt_tokens=np.array([prompt]), output_tokens=np.array([output]))
    service = Service(
        model=StepModel(base_seconds=0.01, per_sequence_seconds=1e-3, per_kv_token_seconds=2e-5, per_prefill_token_seconds=1e-3),
        limits=EngineLimits(max_num_seqs=4, max_num_batched_tokens=chunk, kv_blocks=100),
        lengths=one,
        dispersion=1.0,
        routing=Routing.RANDOM,
        objectives=Objectives(ttft_seconds=ttft, itl_seconds=itl, miss_share=0.01),
    )
    work = Workload(arrival_seconds=np.zeros(1), lengths=one, draws=np.zeros(1))
    fleet = Fleet(limits=service.limits, model=service.model, workload=work, replicas=1, routing=Routing.RANDOM)
    fleet.serve(1)
    fleet.run_until(math.inf)
    assume(abs(fleet.first_token_seconds[0] - ttft) > 1e-9)
    pace = (fleet.last_token_seconds[0] - fleet.first_token_seconds[0]) / max(1, output - 1)
    assume(abs(pace - itl) > 1e-9)
    assert attainable(service, one)[0] == (not over_objectives(service.objectives, work, fleet)[0])


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"ttft_seconds": 0.0}, "TTFT"),
        ({"itl_seconds": float("nan")}, "ITL"),
        ({"miss_share": 0.0}, "share that may miss"),
        ({"miss_share": 1.0}, "share that may miss"),
    ],
)
def test_objectives_that_make_no_sense_are_refused_by_name(values: dict[str, float], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        Objectives(**{"ttft_seconds": 1.0, "itl_seconds": 0.05, "miss_share": 0.01, **values})
