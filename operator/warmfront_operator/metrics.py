"""The operator's own metrics. Labels are bounded by the services, the kinds and the verbs that there are."""

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from warmfront_forecaster.planning.types import Binding, Decision, ForecastState, ReplicaCounts
from warmfront_operator.domain.resources import ServiceKey

REGISTRY: Final = CollectorRegistry()

_SERVICE: Final = ("namespace", "name")

TICK_SECONDS: Final = Histogram(
    "warmfront_tick_seconds",
    "Seconds of one pass over all services.",
    buckets=(0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
    registry=REGISTRY,
)
LAST_TICK: Final = Gauge("warmfront_last_tick_timestamp_seconds", "Unix time at which the last pass ended.", registry=REGISTRY)
SERVICES: Final = Gauge("warmfront_services", "InferenceServices that are served.", registry=REGISTRY)
RECONCILE_ERRORS: Final = Counter(
    "warmfront_reconcile_errors_total",
    "Passes over one service that ended early, by cause.",
    ("cause",),
    registry=REGISTRY,
)
API_WRITES: Final = Counter(
    "warmfront_api_writes_total",
    "Writes to the API server, by kind, verb and outcome.",
    ("kind", "verb", "outcome"),
    registry=REGISTRY,
)
READING_SECONDS: Final = Histogram(
    "warmfront_reading_seconds",
    "Seconds to read from Prometheus or the forecaster.",
    ("source",),
    buckets=(0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
    registry=REGISTRY,
)
READING_ERRORS: Final = Counter(
    "warmfront_reading_errors_total", "Readings of Prometheus or the forecaster that failed.", ("source",), registry=REGISTRY
)
DESIRED: Final = Gauge("warmfront_desired_replicas", "Replicas that the operator wants.", _SERVICE, registry=REGISTRY)
WITHOUT_FORECAST: Final = Gauge(
    "warmfront_desired_replicas_without_forecast",
    "Replicas that the same decision would want with predictive.mode Off.",
    _SERVICE,
    registry=REGISTRY,
)
CANDIDATES: Final = Gauge(
    "warmfront_candidate_replicas",
    "Replicas that each input of the decision asked for; NaN: it did not take part.",
    (*_SERVICE, "input"),
    registry=REGISTRY,
)
REPLICAS: Final = Gauge(
    "warmfront_replicas", "Replicas by state: wanted, warm, starting, unschedulable.", (*_SERVICE, "state"), registry=REGISTRY
)
DEMAND: Final = Gauge(
    "warmfront_demand_replicas", "Demand now, in replica-equivalents; NaN: unknown.", _SERVICE, registry=REGISTRY
)
FORECAST_UPPER: Final = Gauge(
    "warmfront_forecast_upper_replicas",
    "Upper forecast over the decision's window, in replica-equivalents; NaN: none.",
    _SERVICE,
    registry=REGISTRY,
)
LEAD_TIME: Final = Gauge("warmfront_lead_time_seconds", "Seconds from a decision to a warm pod.", _SERVICE, registry=REGISTRY)
BINDING: Final = Gauge(
    "warmfront_binding", "1 for the input that decided the replicas.", (*_SERVICE, "binding"), registry=REGISTRY
)
FORECAST_STATE: Final = Gauge(
    "warmfront_forecast_state", "1 for the trust state of the forecast.", (*_SERVICE, "state"), registry=REGISTRY
)

_PER_SERVICE: Final = (DESIRED, WITHOUT_FORECAST, DEMAND, FORECAST_UPPER, LEAD_TIME)
_UNKNOWN: Final = float("nan")


def show_decision(key: ServiceKey, decision: Decision, counts: ReplicaCounts) -> None:
    """Set the gauges of one service."""
    numbers = decision.candidates
    DESIRED.labels(*key).set(decision.desired)
    without = decision.desired if numbers.without_forecast is None else numbers.without_forecast
    WITHOUT_FORECAST.labels(*key).set(without)
    DEMAND.labels(*key).set(_UNKNOWN if numbers.demand is None else numbers.demand)
    asked = {Binding.REACTIVE: numbers.reactive, Binding.PREDICTIVE: numbers.predictive, Binding.FALLBACK: numbers.fallback}
    for source, replicas in asked.items():
        CANDIDATES.labels(*key, source).set(_UNKNOWN if replicas is None else replicas)
    LEAD_TIME.labels(*key).set(decision.lead_time_seconds)
    for binding in Binding:
        BINDING.labels(*key, binding).set(binding == decision.binding)
    states = {"wanted": counts.wanted, "warm": counts.ready, "starting": counts.starting, "unschedulable": counts.unschedulable}
    for state, number in states.items():
        REPLICAS.labels(*key, state).set(number)


def show_forecast(key: ServiceKey, state: ForecastState | None, upper: float | None) -> None:
    """Set the forecast's gauges of one service; state None: the user wants no forecast."""
    FORECAST_UPPER.labels(*key).set(_UNKNOWN if upper is None else upper)
    for each in ForecastState:
        FORECAST_STATE.labels(*key, each).set(each == state)


def forget(key: ServiceKey) -> None:
    """Drop the series of a service that is gone."""
    for gauge in _PER_SERVICE:
        gauge.remove_by_labels({"namespace": key.namespace, "name": key.name})
    for gauge in (BINDING, CANDIDATES, FORECAST_STATE, REPLICAS):
        gauge.remove_by_labels({"namespace": key.namespace, "name": key.name})
