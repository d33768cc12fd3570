"""The pod's states, and what an engine's silence means."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warmfront_runtime.errors import TransitionError
from warmfront_runtime.gateway.health import EngineWatch, Probe
from warmfront_runtime.gateway.lifecycle import Lifecycle, State


def test_a_start_is_timed_phase_by_phase():
    lifecycle = Lifecycle.start(100)
    assert lifecycle.phase_seconds == {}
    lifecycle = lifecycle.engine_up(160)
    assert (lifecycle.state, lifecycle.ready, lifecycle.phase_seconds) == (State.WARMING, False, {"engine": 60})
    lifecycle = lifecycle.warmed(172)
    assert (lifecycle.state, lifecycle.ready, lifecycle.warm) == (State.READY, True, True)
    assert lifecycle.phase_seconds == {"engine": 60, "warmup": 12}


def test_a_slow_warm_up_serves_cold_and_may_still_get_warm():
    lifecycle = Lifecycle.start(0).engine_up(10)
    assert not lifecycle.overdue(599.9, 600)
    assert lifecycle.overdue(600, 600)
    lifecycle = lifecycle.serve_cold(600)
    assert (lifecycle.ready, lifecycle.warm, lifecycle.overdue(700, 600)) == (True, False, False)
    lifecycle = lifecycle.warmed(700)
    assert (lifecycle.state, lifecycle.warm) == (State.READY, True)


def test_a_lost_engine_begins_a_new_start():
    lifecycle = Lifecycle.start(0).engine_up(10).warmed(20).engine_lost(1000)
    assert lifecycle == Lifecycle.start(1000)
    assert lifecycle.engine_lost(1005) is lifecycle, "the new start is timed from the loss, not from the last look"


def test_a_draining_pod_is_not_ready_but_accepts_until_the_endpoints_know():
    lifecycle = Lifecycle.start(0).engine_up(10).warmed(20).drain(100)
    assert (lifecycle.ready, lifecycle.draining, lifecycle.warm) == (False, True, True)
    assert lifecycle.accepts(104.9, 5)
    assert not lifecycle.accepts(105, 5)
    assert lifecycle.drain(103) is lifecycle, "a second signal does not begin the time anew"
    assert lifecycle.engine_lost(103) is lifecycle
    assert lifecycle.stop(110).state is State.STOPPED


def test_a_pod_that_never_served_accepts_nothing_while_draining():
    assert not Lifecycle.start(0).engine_up(10).drain(20).accepts(20, 5)


WRONG = {
    "warm before the engine": lambda: Lifecycle.start(0).warmed(1),
    "cold after warm": lambda: Lifecycle.start(0).engine_up(1).warmed(2).serve_cold(3),
    "stopped without a drain": lambda: Lifecycle.start(0).stop(1),
    "up twice": lambda: Lifecycle.start(0).engine_up(1).engine_up(2),
}


@pytest.mark.parametrize("case", WRONG)
def test_changes_that_make_no_sense_are_bugs(case: str):
    with pytest.raises(TransitionError):
        WRONG[case]()


HEALTHY, UNHEALTHY, UNANSWERED, UNREACHABLE = Probe.HEALTHY, Probe.UNHEALTHY, Probe.UNANSWERED, Probe.UNREACHABLE
# Probes at 0, 10, 20 ... seconds, and what is known 10 s after the last one, with a hang at 60 s: (hung, lost)
WATCHES = {
    "never reached: it loads": ([UNREACHABLE] * 100, (False, True)),
    "never answered: it loads": ([UNANSWERED] * 100, (False, False)),
    "answers": ([HEALTHY], (False, False)),
    "late once: busy": ([HEALTHY, UNANSWERED], (False, False)),
    "late for 50 s: busy": ([HEALTHY] + [UNANSWERED] * 5, (False, False)),
    "late for 60 s: hangs": ([HEALTHY] + [UNANSWERED] * 6, (True, True)),
    "an answer between begins anew": ([HEALTHY] + [UNANSWERED] * 5 + [HEALTHY] + [UNANSWERED] * 5, (False, False)),
    "says that it is dead": ([HEALTHY, UNHEALTHY], (False, True)),
    "says so for a minute: hangs": ([HEALTHY] + [UNHEALTHY] * 6, (True, True)),
    "unhealthy from the start: it loads": ([UNHEALTHY] * 100, (False, True)),
    "restarting after an answer: it loads again": ([HEALTHY, UNREACHABLE] + [UNANSWERED] * 50, (False, False)),
}


@pytest.mark.parametrize("case", WATCHES)
def test_an_engine_that_loads_is_told_from_one_that_hangs(case: str):
    probes, expected = WATCHES[case]
    watch = EngineWatch(hang_seconds=60)
    for number, probe in enumerate(probes):
        watch.record(probe, 10 * number)
    now = 10 * len(probes)
    assert (watch.hung(now), watch.lost(now)) == expected


@given(st.lists(st.sampled_from([UNHEALTHY, UNANSWERED, UNREACHABLE])))
def test_an_engine_that_never_was_healthy_is_never_killed(probes: list[Probe]):
    watch = EngineWatch(hang_seconds=1)
    for now, probe in enumerate(probes):
        watch.record(probe, now * 100)
        assert not watch.hung(now * 100 + 50)
