"""Conditions, status and Events: what a user reads."""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.operator.facts import ANSWER
from warmfront_api.status import Condition, ConditionType, InferenceServiceStatus
from warmfront_forecaster.contract import PeakAnswer
from warmfront_forecaster.planning.types import Binding, DemandReading, ForecastState
from warmfront_operator.domain import checks, conditions, events, reasons, status
from warmfront_operator.domain.checks import Facts, Problem, Verdict
from warmfront_operator.domain.memory import Memory
from warmfront_operator.domain.observation import DemandView, ForecastView
from warmfront_operator.domain.reasons import StateReason
from warmfront_operator.domain.resources import Template
from warmfront_operator.domain.text import clip

Make = Callable[..., Any]


def told(facts: Facts, kind: ConditionType) -> tuple[str, str]:
    verdict = checks.verdicts(facts)[kind]
    return verdict.status, verdict.reason


def test_a_service_that_runs_well(make_facts: Make) -> None:
    assert {kind: told(make_facts(), kind) for kind in ConditionType} == {
        ConditionType.READY: ("True", "Warm"),
        ConditionType.RECONCILING: ("False", "UpToDate"),
        ConditionType.STALLED: ("False", "UpToDate"),
        ConditionType.SCALING_ACTIVE: ("True", "DemandKnown"),
        ConditionType.ABLE_TO_SCALE: ("True", "ReadyForNewScale"),
        ConditionType.SCALING_LIMITED: ("False", "DesiredWithinRange"),
        ConditionType.FORECAST_READY: ("True", "ForecastAvailable"),
        ConditionType.FORECAST_TRUSTED: ("True", "Trusted"),
        ConditionType.CAPACITY_AVAILABLE: ("True", "PodsPlaced"),
    }


TAKEN = Problem(reason=StateReason.NAME_TAKEN, message="the Service chat belongs to somebody else")
LEARNING = ANSWER.model_copy(update={"state": ForecastState.LEARNING, "reason": "HistoryTooShort", "upper": None})
SHADOW = ANSWER.model_copy(update={"state": ForecastState.SHADOW, "reason": "NotYetBetter"})


@pytest.mark.parametrize(
    ("given_facts", "expected"),
    [
        pytest.param(
            {"problem": TAKEN},
            {"Ready": ("False", "NameTaken"), "Stalled": ("True", "NameTaken"), "Reconciling": ("False", "NameTaken")},
            id="a name that is taken stalls",
        ),
        pytest.param(
            {"problem": Problem(reason=StateReason.RETRYING, message="no answer")},
            {"Ready": ("False", "Retrying"), "Stalled": ("False", "UpToDate"), "Reconciling": ("True", "Retrying")},
            id="an API server that does not answer is retried",
        ),
        pytest.param(
            {"demand": DemandView(error="Prometheus did not answer")},
            {
                "ScalingActive": ("False", "PrometheusUnavailable"),
                "Ready": ("True", "Warm"),
                "AbleToScale": ("True", "ReadyForNewScale"),
            },
            id="prometheus away stops scaling and nothing else",
        ),
        pytest.param({"demand": DemandView()}, {"ScalingActive": ("False", "DemandUnknown")}, id="absent is not zero"),
        pytest.param(
            {"demand": DemandView(configured=False)},
            {"ScalingActive": ("False", "PrometheusNotConfigured")},
            id="no prometheus is configured",
        ),
        pytest.param(
            {"demand": DemandView(reading=DemandReading(arrivals_per_second=1.0, prompt_tokens=None, output_tokens=None))},
            {"ScalingActive": ("False", "TokensUnknown")},
            id="arrivals whose length nobody knows",
        ),
        pytest.param(
            {"forecast": ForecastView(reason="ForecasterUnavailable", message="it is away")},
            {
                "ForecastReady": ("False", "ForecasterUnavailable"),
                "ForecastTrusted": ("False", "ForecasterUnavailable"),
                "ScalingActive": ("True", "DemandKnown"),
            },
            id="the forecaster away leaves the reactive answer",
        ),
        pytest.param(
            {"forecast": ForecastView(answer=LEARNING)},
            {"ForecastReady": ("False", "HistoryTooShort"), "ForecastTrusted": ("False", "HistoryTooShort")},
            id="too little history",
        ),
        pytest.param(
            {"forecast": ForecastView(answer=SHADOW)},
            {"ForecastReady": ("True", "ForecastAvailable"), "ForecastTrusted": ("False", "NotYetBetter")},
            id="a forecast that is not trusted yet",
        ),
        pytest.param(
            {"spec": {"scaling__predictive": {"mode": "Off"}}},
            {"ForecastReady": ("False", "PredictiveOff"), "ForecastTrusted": ("False", "PredictiveOff")},
            id="no forecast is wanted",
        ),
        pytest.param(
            {"spec": {"scaling__mode": "Advisory"}},
            {"ScalingActive": ("False", "Advisory"), "Ready": ("True", "Warm")},
            id="advisory",
        ),
        pytest.param({"spec": {"scaling__mode": "Paused"}}, {"ScalingActive": ("False", "Paused")}, id="paused"),
        pytest.param(
            {"spec": {"scaling__mode": "Paused", "replicas": 5}, "memory": Memory(stale_replicas=5)},
            {"ScalingActive": ("False", "PausedHolding")},
            id="paused with a value from before",
        ),
        pytest.param(
            {"scale_error": "403"},
            {"AbleToScale": ("False", "ScaleRefused"), "Ready": ("True", "Warm")},
            id="the scale write is refused",
        ),
        pytest.param(
            {"decision": {"limited": True, "binding": Binding.MAXIMUM}},
            {"ScalingLimited": ("True", "TooManyReplicas")},
            id="the maximum binds",
        ),
        pytest.param(
            {"decision": {"limited": True, "binding": Binding.REACTIVE}},
            {"ScalingLimited": ("True", "Paced")},
            id="the pace binds",
        ),
        pytest.param(
            {"deployment": {"failure": "exceeded quota"}},
            {"CapacityAvailable": ("False", "PodsRefused")},
            id="pods that a quota refuses",
        ),
    ],
)
def test_conditions_tell(make_facts: Make, given_facts: dict[str, Any], expected: dict[str, tuple[str, str]]) -> None:
    facts = make_facts(**given_facts)
    assert {kind: told(facts, ConditionType(kind)) for kind in expected} == expected


def test_a_cold_service_is_reconciling_and_not_ready(make_facts: Make, make_pod: Make) -> None:
    facts = make_facts(pods=(make_pod(ready_after=None),))
    assert told(facts, ConditionType.READY) == ("False", "NoWarmPod")
    assert told(facts, ConditionType.RECONCILING) == ("True", "NoWarmPod")


def test_scaling_touches_neither_ready_nor_reconciling(make_facts: Make, make_pod: Make) -> None:
    """Flux' wait and Argo CD's health would flap every morning."""
    warm, starting = make_pod("a"), make_pod("b", ready_after=None)
    stuck = make_pod("c", ready_after=None, unschedulable="0/2 nodes", unschedulable_since=datetime(2026, 3, 2, 8, tzinfo=UTC))
    late = {"replicas": 3, "total": 3, "stuck": "the deadline has passed"}
    leaving = make_pod("d", deleting=True)
    for pods in ((warm,), (warm, starting), (warm, starting, stuck), (warm, leaving)):
        facts = make_facts(pods=pods, deployment=late)
        assert told(facts, ConditionType.READY) == ("True", "Warm")
        assert told(facts, ConditionType.RECONCILING) == ("False", "UpToDate")
        assert told(facts, ConditionType.STALLED) == ("False", "UpToDate")


def test_an_unschedulable_pod_is_told_with_the_schedulers_words(make_facts: Make, make_pod: Make) -> None:
    stuck = make_pod("c", ready_after=None, unschedulable="0/2 nodes: insufficient nvidia.com/gpu")
    verdict = checks.verdicts(make_facts(pods=(make_pod(), stuck)))[ConditionType.CAPACITY_AVAILABLE]
    assert (verdict.status, verdict.reason) == ("False", "Unschedulable")
    assert "insufficient nvidia.com/gpu" in verdict.message


def test_a_rollout_that_gets_nowhere_stalls(make_facts: Make, make_pod: Make) -> None:
    facts = make_facts(
        pods=(make_pod(template_hash="old"),), deployment={"template": Template(hash="new"), "stuck": "has timed out progressing"}
    )
    assert told(facts, ConditionType.STALLED) == ("True", "RolloutStuck")
    assert told(facts, ConditionType.READY) == ("False", "RolloutStuck")


def test_a_rollout_is_told_until_the_last_old_pod_is_gone(make_facts: Make, make_pod: Make) -> None:
    new = {"template": Template(hash="new")}
    under_way = make_facts(pods=(make_pod("a", template_hash="old"), make_pod("b", template_hash="new")), deployment=new)
    assert told(under_way, ConditionType.READY) == ("False", "RolloutInProgress")
    assert told(under_way, ConditionType.RECONCILING) == ("True", "RolloutInProgress")
    assert told(make_facts(pods=(make_pod("b", template_hash="new"),), deployment=new), ConditionType.READY) == ("True", "Warm")


def test_an_invalid_spec_says_something_in_every_condition() -> None:
    facts = Facts(service=None, memory=Memory(), problem=Problem(reason=StateReason.INVALID_SPEC, message="spec.model: missing"))
    found = checks.verdicts(facts)
    assert set(found) == set(ConditionType)
    assert found[ConditionType.STALLED] == Verdict(status="True", reason="InvalidSpec", message="spec.model: missing")


# over time

VERDICTS = st.builds(
    Verdict,
    status=st.sampled_from(["True", "False", "Unknown"]),
    reason=st.sampled_from(["A", "B"]),
    message=st.sampled_from(["", "one", "two"]),
)


@given(steps=st.lists(st.tuples(VERDICTS, st.booleans(), st.integers(1, 2)), min_size=1, max_size=12))
def test_transition_times_move_with_the_status_and_with_nothing_else(steps: list[tuple[Verdict, bool, int]]) -> None:
    time = datetime(2026, 3, 2, tzinfo=UTC)
    merged: list[Condition] = []
    for number, (verdict, refresh, generation) in enumerate(steps):
        at = time + timedelta(minutes=number)
        previous = merged
        merged = conditions.merge(previous, {ConditionType.READY: verdict}, generation=generation, now=at, refresh=refresh)
        now_is = merged[0]
        assert (now_is.status, now_is.reason, now_is.observed_generation) == (verdict.status, verdict.reason, generation)
        moved = not previous or previous[0].status != verdict.status
        expected = at.isoformat().replace("+00:00", "Z") if moved else previous[0].last_transition_time
        assert now_is.last_transition_time == expected


@given(verdict=VERDICTS, refresh=st.booleans())
def test_the_same_verdict_again_changes_nothing(verdict: Verdict, refresh: bool) -> None:
    time = datetime(2026, 3, 2, tzinfo=UTC)
    once = conditions.merge([], {ConditionType.READY: verdict}, generation=1, now=time, refresh=refresh)
    later = time + timedelta(hours=1)
    assert conditions.merge(once, {ConditionType.READY: verdict}, generation=1, now=later, refresh=refresh) == once


def test_a_message_that_only_counts_on_waits_for_a_refresh(now: datetime) -> None:
    def at(message: str, *, refresh: bool, previous: list[Condition]) -> list[Condition]:
        verdict = Verdict(status="False", reason="HistoryTooShort", message=message)
        return conditions.merge(previous, {ConditionType.FORECAST_READY: verdict}, generation=1, now=now, refresh=refresh)

    first = at("needs 9 h more", refresh=True, previous=[])
    assert at("needs 8 h more", refresh=False, previous=first) == first
    assert at("needs 8 h more", refresh=True, previous=first)[0].message == "needs 8 h more"


def test_messages_stay_within_the_bound_of_the_api() -> None:
    assert len(clip("x" * 5000)) == 1024
    assert clip("short") == "short"


# status


def render(facts: Facts, previous: InferenceServiceStatus, now: datetime, *, refresh: bool = False) -> InferenceServiceStatus:
    return status.render(facts, previous, name="chat", generation=1, now=now, refresh=refresh)


def test_nothing_changed_means_nothing_to_write(make_facts: Make, now: datetime) -> None:
    first = render(make_facts(), InferenceServiceStatus(), now, refresh=True)
    stored = status.parse(first.to_wire())
    moved = ANSWER.model_copy(update={"upper": 3.9, "message": "better on 10 of 10 days"})
    for seconds in range(15, 150, 15):
        again = render(make_facts(forecast=ForecastView(answer=moved)), stored, now + timedelta(seconds=seconds))
        assert status.same(again, stored)


def test_the_order_in_which_conditions_are_stored_is_no_difference(make_facts: Make, now: datetime) -> None:
    first = render(make_facts(), InferenceServiceStatus(), now)
    assert status.same(first, first.model_copy(update={"conditions": first.conditions[::-1]}))


def test_forecast_figures_are_rounded_and_move_with_a_refresh(make_facts: Make, now: datetime) -> None:
    first = render(make_facts(), InferenceServiceStatus(), now)
    assert first.forecast is not None
    assert (first.forecast.upper, first.forecast.horizon_seconds, first.forecast.state) == ("3.4", 275, "Trusted")
    moved = make_facts(forecast=ForecastView(answer=ANSWER.model_copy(update={"upper": 5.06})))
    unrefreshed = render(moved, first, now)
    assert unrefreshed.forecast == first.forecast
    refreshed = render(moved, first, now, refresh=True).forecast
    assert refreshed is not None
    assert refreshed.upper == "5.1"


def test_another_trust_state_is_told_at_once(make_facts: Make, now: datetime) -> None:
    first = render(make_facts(), InferenceServiceStatus(), now)
    degraded = ANSWER.model_copy(update={"state": ForecastState.DEGRADED, "reason": "CoverageLow"})
    found = render(make_facts(forecast=ForecastView(answer=degraded)), first, now).forecast
    assert found is not None
    assert (found.state, found.reason) == ("Degraded", "CoverageLow")


@pytest.mark.parametrize("upper", [float("nan"), float("inf"), -1.0, None], ids=str)
def test_a_figure_that_is_no_amount_is_left_out(make_facts: Make, now: datetime, upper: float | None) -> None:
    odd = ForecastView(answer=ANSWER.model_copy(update={"upper": upper}))
    found = render(make_facts(forecast=odd), InferenceServiceStatus(), now).forecast
    assert found is not None
    assert found.upper is None


def test_the_next_peak_is_the_first_that_has_not_passed(make_facts: Make, now: datetime) -> None:
    def peak(hours: int, replicas: int) -> PeakAnswer:
        start = now + timedelta(hours=hours)
        return PeakAnswer(start=start, end=start + timedelta(hours=1), replicas=replicas)

    answer = ANSWER.model_copy(update={"peaks": [peak(5, 9), peak(-3, 4), peak(2, 6)]})
    found = render(make_facts(forecast=ForecastView(answer=answer)), InferenceServiceStatus(), now).forecast
    assert found is not None
    assert found.next_peak is not None
    assert (found.next_peak.replicas, found.next_peak.start) == (6, "2026-03-02T11:00:00Z")


def test_a_service_without_a_deployment_keeps_its_last_figures(make_facts: Make, now: datetime) -> None:
    first = render(make_facts(), InferenceServiceStatus(), now)
    facts = replace(make_facts(), seen=None, decision=None, problem=TAKEN)
    later = render(facts, first, now)
    assert (later.replicas, later.ready_replicas, later.desired_replicas) == (1, 1, 1)


@pytest.mark.parametrize("stored", [None, {}, {"replicas": "many"}, {"conditions": 3}, {"unknown": 1}], ids=str)
def test_a_stored_status_that_is_not_ours_is_read_as_none(stored: dict[str, Any] | None) -> None:
    assert status.parse(stored) == InferenceServiceStatus()


# events


def test_problems_become_events_when_they_begin_and_only_then(make_facts: Make, now: datetime) -> None:
    well = render(make_facts(), InferenceServiceStatus(), now)
    away = render(make_facts(forecast=ForecastView(reason="ForecasterUnavailable", message="away")), well, now)
    begun = events.of_conditions("uid", conditions.turned(well.conditions, away.conditions))
    assert [(event.type, event.reason) for event in begun] == [("Warning", "ForecasterUnavailable")]
    assert conditions.turned(away.conditions, away.conditions) == []


def test_a_forecaster_that_still_learns_is_no_event(make_facts: Make, now: datetime) -> None:
    well = render(make_facts(), InferenceServiceStatus(), now)
    learning = render(make_facts(forecast=ForecastView(answer=LEARNING)), well, now)
    assert events.of_conditions("uid", conditions.turned(well.conditions, learning.conditions)) == []


def test_what_the_user_asked_for_is_no_event(make_facts: Make, now: datetime) -> None:
    well = render(make_facts(), InferenceServiceStatus(), now)
    advisory = render(make_facts(spec={"scaling__mode": "Advisory", "scaling__predictive": {"mode": "Off"}}), well, now)
    assert events.of_conditions("uid", conditions.turned(well.conditions, advisory.conditions)) == []


@pytest.mark.parametrize(
    ("mode", "replicas", "tells"), [("Active", 5, True), ("Advisory", 5, True), ("Paused", 5, False), ("Active", None, False)]
)
def test_spec_replicas_where_it_changes_nothing(make_service: Make, mode: str, replicas: int | None, tells: bool) -> None:
    assert (events.replicas_ignored(make_service(scaling__mode=mode, replicas=replicas)) is not None) is tells


# documentation


def test_every_reason_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/conditions.md").read_text()
    documented = set(re.findall(r"`([A-Z][A-Za-z]+)`", page))
    enums = [
        item for item in vars(reasons).values() if isinstance(item, type) and issubclass(item, StrEnum) and item is not StrEnum
    ]
    known = {str(member) for each in enums for member in each}
    assert known - documented == set()
    assert {str(kind) for kind in ConditionType} - documented == set()
