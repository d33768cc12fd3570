"""What the demo takes from the API server and from the operator's metrics."""

from typing import Any

import pytest

from e2e.support.readings import (
    condition,
    forecast_trusted,
    new_decisions,
    operator_numbers,
    pod_times,
    starting_count,
    warm_count,
)

METRICS = """\
# TYPE warmfront_demand_replicas gauge
warmfront_demand_replicas{name="chat",namespace="demo"} 1.25
warmfront_demand_replicas{name="other",namespace="demo"} 9
# TYPE warmfront_forecast_upper_replicas gauge
warmfront_forecast_upper_replicas{name="chat",namespace="demo"} NaN
# TYPE warmfront_candidate_replicas gauge
warmfront_candidate_replicas{name="chat",namespace="demo",input="Reactive"} 1
warmfront_candidate_replicas{name="chat",namespace="demo",input="Predictive"} 3
# TYPE warmfront_desired_replicas_without_forecast gauge
warmfront_desired_replicas_without_forecast{name="chat",namespace="demo"} 1
# TYPE warmfront_binding gauge
warmfront_binding{binding="Reactive",name="chat",namespace="demo"} 0
warmfront_binding{binding="Predictive",name="chat",namespace="demo"} 1
"""


def pod(name: str, *, ready: str | None, going: bool = False) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "creationTimestamp": "2026-01-01T10:00:00Z"}
    if going:
        metadata["deletionTimestamp"] = "2026-01-01T10:05:00Z"
    conditions = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T10:00:01Z"}]
    if ready:
        conditions.append({"type": "Ready", "status": ready, "lastTransitionTime": "2026-01-01T10:01:40Z"})
    return {"metadata": metadata, "status": {"conditions": conditions}}


PODS = {"items": [pod("a", ready="True"), pod("b", ready="False"), pod("c", ready=None), pod("d", ready="True", going=True)]}


def test_the_operators_numbers_are_of_the_asked_service_and_nan_is_unknown() -> None:
    got = operator_numbers(METRICS, namespace="demo", name="chat")
    assert (got.demand, got.forecast_upper, got.without_forecast) == (1.25, None, 1)
    assert (got.reactive, got.predictive, got.binding) == (1, 3, "Predictive")


def test_a_service_that_the_operator_does_not_know_has_no_numbers() -> None:
    got = operator_numbers(METRICS, namespace="elsewhere", name="chat")
    assert (got.demand, got.binding) == (None, "")


def test_a_pod_is_warm_from_when_it_turned_ready() -> None:
    times = {each.name: each for each in pod_times(PODS)}
    assert times["a"].start_up_seconds == pytest.approx(100)
    assert times["b"].warm_at is None
    assert times["c"].start_up_seconds is None


def test_pods_that_go_away_count_neither_as_warm_nor_as_starting() -> None:
    assert (warm_count(PODS), starting_count(PODS)) == (1, 2)


def test_an_absent_condition_is_unknown() -> None:
    assert condition({"status": {}}, "Ready")["status"] == "Unknown"
    assert condition({}, "Ready")["status"] == "Unknown"


@pytest.mark.parametrize(
    ("state", "status", "trusted"),
    [("Trusted", "True", True), ("Learning", "True", False), ("Trusted", "False", False), (None, "True", False)],
)
def test_a_forecast_is_trusted_when_its_state_and_its_condition_both_say_so(
    state: str | None, status: str, trusted: bool
) -> None:
    forecast = None if state is None else {"state": state}
    resource = {"status": {"forecast": forecast, "conditions": [{"type": "ForecastTrusted", "status": status}]}}
    assert forecast_trusted(resource) is trusted


def test_a_service_without_a_status_has_neither_trust_nor_decisions() -> None:
    assert not forecast_trusted({})
    assert new_decisions({}, since=0.0, known=()) == []


def test_decisions_of_an_earlier_run_and_known_ones_are_left_out_and_the_rest_come_oldest_first() -> None:
    times = ["2026-01-01T10:09:00Z", "2026-01-01T10:08:00Z", "2026-01-01T10:07:00Z", "2026-01-01T09:00:00Z"]
    resource = {"status": {"decisions": [{"time": time} for time in times]}}
    began = 1_767_261_600.0  # 2026-01-01T10:00:00Z
    got = new_decisions(resource, since=began, known={"2026-01-01T10:08:00Z"})
    assert [decision["time"] for decision in got] == ["2026-01-01T10:07:00Z", "2026-01-01T10:09:00Z"]
