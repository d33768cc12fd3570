"""The fluid rate is what the token-level engine reaches at saturation, and names what bounds it."""

from dataclasses import replace

import numpy as np
import pytest

from warmfront_forecaster.capacity.fleet import Fleet, Routing
from warmfront_forecaster.capacity.fluid import Bottleneck, LengthMoments, fluid_rate
from warmfront_forecaster.capacity.step_model import StepModel
from warmfront_forecaster.capacity.token_engine import EngineLimits
from warmfront_forecaster.capacity.workload import Lengths, Workload

MODEL = StepModel(base_seconds=0.008, per_sequence_seconds=3e-5, per_kv_token_seconds=4e-8, per_prefill_token_seconds=4e-5)
LIMITS = EngineLimits(max_num_seqs=64, max_num_batched_tokens=2048, kv_blocks=20_000)
LOOSE = 10.0  # seconds of ITL that nothing reaches


def sample(requests: int) -> Lengths:
    rng = np.random.default_rng(11)
    prompt, output = rng.gamma(0.8, 900.0, requests), rng.gamma(1.0, 220.0, requests)
    return Lengths(
        prompt_tokens=np.clip(prompt, 8, 6_000).astype(np.int64), output_tokens=np.clip(output, 2, 1_500).astype(np.int64)
    )


def saturated(limits: EngineLimits, lengths: Lengths) -> float:
    """Requests per second that an engine serves which never has nothing to do, its beginning and end left out."""
    count = len(lengths)
    work = Workload(arrival_seconds=np.zeros(count), lengths=lengths, draws=np.zeros(count))
    fleet = Fleet(limits=limits, model=MODEL, workload=work, replicas=1, routing=Routing.RANDOM)
    fleet.serve(count)
    fleet.run_until(float("inf"))
    ends = np.sort(fleet.last_token_seconds)
    return 0.6 * count / float(ends[int(0.8 * count)] - ends[int(0.2 * count)])


@pytest.mark.parametrize(
    ("limits", "bottleneck", "within"),
    [
        pytest.param(LIMITS, Bottleneck.COMPUTE, 0.03, id="the batch is bounded by max_num_seqs"),
        pytest.param(replace(LIMITS, max_num_seqs=8), Bottleneck.COMPUTE, 0.03, id="a small batch"),
        pytest.param(
            replace(LIMITS, max_num_seqs=256, kv_blocks=1_500), Bottleneck.MEMORY, 0.12, id="memory binds: preemptions cost some"
        ),
    ],
)
def test_a_saturated_engine_reaches_the_fluid_rate(limits: EngineLimits, bottleneck: Bottleneck, within: float) -> None:
    lengths = sample(20_000)
    fluid = fluid_rate(MODEL, limits, LengthMoments.of(lengths), LOOSE)
    assert fluid.bottleneck is bottleneck
    assert saturated(limits, lengths) == pytest.approx(fluid.requests_per_second, rel=within)


def test_the_itl_objective_bounds_the_batch_so_that_a_mean_step_just_meets_it() -> None:
    limits, moments = replace(LIMITS, max_num_seqs=1_000, kv_blocks=1_000_000), LengthMoments.of(sample(5_000))
    fluid = fluid_rate(MODEL, limits, moments, 0.02)
    prefill = fluid.batch / moments.output_tokens * moments.prompt_tokens
    step = 0.008 + 3e-5 * fluid.batch + 4e-8 * fluid.batch * moments.context_tokens + 4e-5 * prefill
    assert step == pytest.approx(0.02)
    assert fluid.requests_per_second == pytest.approx(fluid.batch / moments.output_tokens / step)


@pytest.mark.parametrize(
    ("itl_seconds", "batch", "meets_itl"),
    [
        pytest.param(0.007, 1.0, False, id="an objective below the base step: one sequence at a time, and it is said"),
        pytest.param(0.0081, 0.0001 / (4e-6 + 3e-5 + 4e-8 * 60), True, id="a few sequences"),
        pytest.param(LOOSE, 64.0, True, id="met by any batch"),
    ],
)
def test_an_itl_that_no_batch_meets_is_said(itl_seconds: float, batch: float, *, meets_itl: bool) -> None:
    short = LengthMoments(prompt_tokens=10, output_tokens=100, context_tokens=60)
    fluid = fluid_rate(MODEL, LIMITS, short, itl_seconds)
    assert fluid.meets_itl is meets_itl
    assert fluid.batch == pytest.approx(batch)


def test_context_is_the_mean_over_decode_steps_not_a_product_of_means() -> None:
    pairs = Lengths(prompt_tokens=np.array([100, 1_000]), output_tokens=np.array([10, 390]))
    moments = LengthMoments.of(pairs)
    assert (moments.prompt_tokens, moments.output_tokens) == (550, 200)
    assert moments.context_tokens == pytest.approx(((100 * 10 + 50) + (1_000 * 390 + 390**2 / 2)) / 400)
