"""What the demo plays, worked out by hand from the trace and the sample."""

import pytest

from e2e.demo.scenario import Scenario, recorded
from e2e.load.schedule import plan_requests
from warmfront_forecaster.capacity.step_model import StepModel

DAY = 86_400


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    return recorded()


def test_the_jump_is_at_ten_past_ten_of_day_ten_and_every_day_before_it_but_the_first(scenario: Scenario) -> None:
    assert scenario.jump_seconds == 10 * DAY + 36_600
    for day in range(1, 11):
        at = day * DAY + 36_600
        assert scenario.trace.rate_at(at - 1) == 0
        assert 0.5 < scenario.trace.rate_at(at) / scenario.trace.peak < 0.6


def test_the_load_rests_until_the_jump_and_then_needs_three_replicas(scenario: Scenario) -> None:
    start = scenario.history_end_seconds
    requests = plan_requests(scenario.trace, scenario.play(from_seconds=start))
    until_jump = scenario.jump_seconds - start
    assert min(request.at_seconds for request in requests) > until_jump
    assert len(requests) == pytest.approx(3.9 * 360, rel=0.1)
    assert scenario.needed(from_seconds=start) == {2: scenario.jump_seconds, 3: scenario.jump_seconds}


def test_the_mean_of_what_is_played_is_the_mean_that_history_holds(scenario: Scenario) -> None:
    requests = plan_requests(scenario.trace, scenario.play(from_seconds=scenario.history_end_seconds))
    words = sum(request.prompt_tokens for request in requests) / len(requests)
    output = sum(request.output_tokens for request in requests) / len(requests)
    assert words + 10 == pytest.approx(scenario.tokens.prompt, rel=0.03)
    assert output == pytest.approx(scenario.tokens.output, rel=0.03)


def test_history_ends_now_and_keeps_the_time_of_day_apart_by_whole_days(scenario: Scenario) -> None:
    window = scenario.past(now=1_800_000_000.0).window
    times = list(window.sample_times())
    assert times[-1] + window.shift_seconds == 1_800_000_000
    yesterdays_jump = 9 * DAY + 36_600 + window.shift_seconds
    assert scenario.jump_seconds + window.shift_seconds - yesterdays_jump == DAY
    assert yesterdays_jump + DAY - 1_800_000_000 == 540


def test_the_samples_capacity_is_what_its_engine_settings_give(scenario: Scenario) -> None:
    service = scenario.service
    env = {entry.name: float(entry.value or "nan") for entry in service.spec.engine.env}
    model = StepModel(
        base_seconds=env["ENGINESIM_STEP_BASE_SECONDS"], per_sequence_seconds=env["ENGINESIM_STEP_PER_SEQUENCE_SECONDS"]
    )
    full_batch = model.decode_tokens_per_second(batch=service.spec.engine.max_num_seqs, context_tokens=0)
    assert service.spec.scaling.capacity.decode_tokens_per_second == pytest.approx(full_batch, rel=0.01)
    assert service.spec.scaling.capacity.prefill_tokens_per_second == env["ENGINESIM_PREFILL_TOKENS_PER_SECOND"]


def test_the_engine_takes_ninety_seconds_to_start(scenario: Scenario) -> None:
    env = {entry.name: entry.value for entry in scenario.service.spec.engine.env}
    phases = ("LOAD", "COMPILE", "CAPTURE")
    assert sum(float(env[f"ENGINESIM_{phase}_SECONDS"] or "nan") for phase in phases) == 90
