"""One clear sentence per decision, with the numbers. Status, events and logs show it as it is."""

from collections.abc import Callable
from dataclasses import dataclass

from warmfront_forecaster.planning import pace
from warmfront_forecaster.planning.amounts import is_amount
from warmfront_forecaster.planning.outcome import Outcome
from warmfront_forecaster.planning.predictive import Judgement
from warmfront_forecaster.planning.reasons import ForecastUse, Reason
from warmfront_forecaster.planning.scale_down import window
from warmfront_forecaster.planning.types import Forecast, Observation

_ONE_DECIMAL_FROM, _ONE_DECIMAL_TO = 0.1, 1e6


@dataclass(frozen=True, kw_only=True)
class Facts:
    """All that a sentence may speak of."""

    observation: Observation
    outcome: Outcome
    judgement: Judgement
    lead_time_seconds: float


def sentence(facts: Facts) -> str:
    """The decision in a sentence."""
    return _SENTENCES[facts.outcome.reason](facts)


def forecast_sentence(use: ForecastUse, forecast: Forecast | None) -> str:
    """Whether the forecast took part, and what would have to change, in a sentence."""
    said = f": {forecast.message}" if forecast and forecast.message else ""
    state = forecast.state if forecast else "unknown"
    sentences = {
        ForecastUse.ACTIVE: "the forecast is trusted and acted on",
        ForecastUse.SHADOW: "the forecast is trusted and only shown; set predictive.mode to Active to act on it",
        ForecastUse.OFF: "predictive.mode is Off; scaling follows measured demand",
        ForecastUse.UNAVAILABLE: f"the forecaster gave no forecast; scaling follows measured demand{said}",
        ForecastUse.NOT_TRUSTED: f"the forecast is {state} and not acted on{said}",
        ForecastUse.INVALID: f"the forecast is not used: {_numbers(forecast, bad=True)} cannot be demand",
        ForecastUse.INCOMPLETE: f"the forecast is not used: it lacks {_numbers(forecast, bad=False)}",
    }
    return sentences[use]


def number(value: float | None) -> str:
    """Demand for a human: one decimal; two digits where that would read 0.0, or run on."""
    if value is None:
        return "unknown"
    return f"{value:.1f}" if value == 0 or _ONE_DECIMAL_FROM <= value < _ONE_DECIMAL_TO else f"{value:.2g}"


def replicas(count: int | None) -> str:
    """`1 replica`, `2 replicas`."""
    return f"{count} replica" if count == 1 else f"{count} replicas"


def _numbers(forecast: Forecast | None, *, bad: bool) -> str:
    if forecast is None:
        return "its numbers"
    named = {"upper": forecast.upper, "median": forecast.median, "max_demand_seen": forecast.max_demand_seen}
    if bad:
        return ", ".join(f"{name} {value}" for name, value in named.items() if value is not None and not is_amount(value))
    return ", ".join(name for name, value in named.items() if value is None)


def _demand_needs(facts: Facts) -> str:
    numbers = facts.outcome.candidates
    verb = "needs" if not numbers.backlog else f"and a backlog worth {number(numbers.backlog)} need"
    return f"demand {number(numbers.demand)} {verb} {replicas(numbers.reactive)}"


def _at_target(facts: Facts) -> str:
    percent = round(100 * facts.observation.capacity.target_utilization)
    return f"{_demand_needs(facts)} at {percent} % of their throughput"


def _peak(facts: Facts) -> str:
    numbers, outlook = facts.outcome.candidates, facts.judgement.outlook
    cut = numbers.predictive_uncapped != numbers.predictive
    more = f", capped from {numbers.predictive_uncapped}" if cut else ""
    upper = number(outlook.upper if outlook else None)
    return (
        f"forecast peak needs {replicas(numbers.predictive)} within {facts.lead_time_seconds:.0f} s "
        f"(demand now {number(numbers.demand)}, quantile upper {upper}{more})"
    )


def _wanted(facts: Facts) -> str:
    """What asks for replicas, whether measured, forecast or held."""
    numbers = facts.outcome.candidates
    if numbers.reactive is None:
        return f"demand is unknown and {replicas(numbers.want)} are to be kept"
    predicted = numbers.predictive or 0
    if facts.judgement.acting and predicted > max(numbers.reactive, numbers.minimum):
        return _peak(facts)
    return _demand_needs(facts)


def _minimum(facts: Facts) -> str:
    return f"{_wanted(facts)}; minReplicas is {facts.outcome.candidates.minimum}"


def _maximum(facts: Facts) -> str:
    numbers = facts.outcome.candidates
    wanted = _wanted(facts)
    if numbers.want is not None and numbers.want > numbers.maximum:
        return f"{wanted}; maxReplicas is {numbers.maximum}: raise it, or requests will queue"
    return f"{wanted}; lowered at once to maxReplicas {numbers.maximum}"


def _pace_up(facts: Facts) -> str:
    limit = f"at most +{pace.UP_PERCENT} % or +{pace.UP_REPLICAS} per {pace.UP_PERIOD.total_seconds():.0f} s"
    return f"{_wanted(facts)}; {_move(facts)} first, {limit}"


def _move(facts: Facts) -> str:
    held, desired = facts.outcome.candidates.held, facts.outcome.desired
    return f"holding {desired}" if held == desired else f"going from {held} to {desired}"


def _stopped(why: Callable[[Facts], str]) -> Callable[[Facts], str]:
    return lambda facts: f"{_wanted(facts)}; {_move(facts)}, {why(facts)}"


def _pace_down(_: Facts) -> str:
    period = pace.DOWN_PERIOD.total_seconds()
    return f"at most {pace.DOWN_REPLICAS} or {pace.DOWN_PERCENT} % fewer per {period:.0f} s"


def _window(facts: Facts) -> str:
    seconds = window(trusted=facts.judgement.acting is not None).total_seconds()
    return f"since {facts.outcome.candidates.down_window} were wanted within the last {seconds:.0f} s"


def _unwatched(facts: Facts) -> str:
    seconds = window(trusted=facts.judgement.acting is not None).total_seconds()
    return f"until demand has been watched without a gap for {seconds:.0f} s"


def _payback(facts: Facts) -> str:
    payback = facts.outcome.candidates.payback
    return f"since the median forecast wants {payback} back within {facts.lead_time_seconds:.0f} s"


def _held(why: str) -> Callable[[Facts], str]:
    return lambda facts: f"{why}; {_move(facts)}, nothing is removed on unknown demand"


def _unread(facts: Facts) -> str:
    times = facts.observation.failed_readings
    failed = f" ({times} in a row)" if times > 1 else ""
    return _held(f"demand could not be read{failed}")(facts)


def _fallback(facts: Facts) -> str:
    times, floor = facts.observation.failed_readings, facts.outcome.candidates.fallback
    return f"demand could not be read {times} times in a row; {_move(facts)}, fallback.replicas is {floor}"


def _median(facts: Facts) -> str:
    return (
        f"demand is unknown; {_move(facts)}, since the median forecast wants "
        f"{facts.outcome.candidates.payback} within {facts.lead_time_seconds:.0f} s"
    )


def _paused(facts: Facts) -> str:
    return f"scaling.mode is Paused; spec.replicas asks for {facts.observation.policy.paused_replicas}"


_SENTENCES: dict[Reason, Callable[[Facts], str]] = {
    Reason.DEMAND_MEASURED: _at_target,
    Reason.BACKLOG_WAITING: _at_target,
    Reason.FORECAST_PEAK: _peak,
    Reason.MINIMUM_REPLICAS: _minimum,
    Reason.MAXIMUM_REPLICAS: _maximum,
    Reason.SCALE_UP_PACE: _pace_up,
    Reason.SCALE_DOWN_PACE: _stopped(_pace_down),
    Reason.DOWN_WINDOW: _stopped(_window),
    Reason.HISTORY_TOO_SHORT: _stopped(_unwatched),
    Reason.LOAD_DOES_NOT_FIT: _stopped(lambda _: "since the backlog would not fit fewer once starting pods are cancelled"),
    Reason.FORECAST_PAYBACK: _stopped(_payback),
    Reason.ROLLOUT_UNDER_WAY: _stopped(lambda _: "no warm pod goes during a rollout"),
    Reason.NO_READY_REPLICA: _stopped(lambda _: "with no Ready pod arrivals are not counted"),
    Reason.PENDING_CANCELLED: _stopped(lambda _: "only pods that were not Ready are cancelled for now"),
    Reason.DEMAND_UNKNOWN: _unread,
    Reason.DEMAND_INVALID: _held("the demand reading has a number that is NaN, infinite or negative"),
    Reason.TOKENS_UNKNOWN: _held("requests arrive but none was served, so tokens per request are unknown"),
    Reason.CAPACITY_INVALID: _held("capacity must be above 0 tokens per second with a target above 0 and at most 100 %"),
    Reason.FORECAST_MEDIAN: _median,
    Reason.FALLBACK_FLOOR: _fallback,
    Reason.PAUSED_REPLICAS: _paused,
    Reason.PAUSED_HOLD: lambda facts: f"scaling.mode is Paused and spec.replicas is unset; holding {facts.outcome.desired}",
}
