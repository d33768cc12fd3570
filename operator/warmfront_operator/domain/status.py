"""The status of a service, rendered from one pass. Rounded, and equal to the stored one when nothing happened."""

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from pydantic import ValidationError

from warmfront_api import names
from warmfront_api.status import (
    Binding,
    ColdStartStatus,
    DecisionStatus,
    ForecastState,
    ForecastStatus,
    InferenceServiceStatus,
    Peak,
)
from warmfront_forecaster.contract import PeakAnswer, ServiceForecast
from warmfront_forecaster.planning.reasons import Reason
from warmfront_forecaster.planning.types import Decision
from warmfront_operator.domain import coldstart
from warmfront_operator.domain.checks import Facts, verdicts
from warmfront_operator.domain.conditions import merge
from warmfront_operator.domain.memory import entry
from warmfront_operator.domain.reasons import ForecastReason
from warmfront_operator.domain.text import clip, wire_time

# A Hold for one of these is out of order; the others (the down-window, a pace) are how every scale-down begins.
WITHOUT_DEMAND: Final = frozenset(
    {Reason.DEMAND_UNKNOWN, Reason.DEMAND_INVALID, Reason.TOKENS_UNKNOWN, Reason.CAPACITY_INVALID, Reason.FORECAST_MEDIAN}
)


def parse(raw: Mapping[str, Any] | None) -> InferenceServiceStatus:
    """A stored status; an empty one where it is absent or not ours to read."""
    try:
        return InferenceServiceStatus.model_validate(raw or {})
    except ValidationError:
        return InferenceServiceStatus()


def render(
    facts: Facts, previous: InferenceServiceStatus, *, name: str, generation: int, now: datetime, refresh: bool
) -> InferenceServiceStatus:
    """What to report. `refresh`: figures and messages may move; else only what changed in kind does."""
    found, memory = facts.counts, facts.memory
    return InferenceServiceStatus(
        observed_generation=generation,
        replicas=facts.seen.deployment.total if facts.seen else previous.replicas,
        ready_replicas=found.ready if found else previous.ready_replicas,
        desired_replicas=memory.last_desired,
        selector=f"{names.LABEL_SERVICE}={name}",
        forecast=_forecast(facts, previous.forecast, now=now, refresh=refresh),
        cold_start=_cold_start(facts) or previous.cold_start,
        last_decision=_last_decision(facts, previous, refresh=refresh),
        decisions=list(memory.decisions),
        conditions=merge(previous.conditions, verdicts(facts), generation=generation, now=now, refresh=refresh),
    )


def same(one: InferenceServiceStatus, other: InferenceServiceStatus) -> bool:
    """Nothing to write. The order of conditions is the API server's."""
    return _ordered(one) == _ordered(other)


def _ordered(status: InferenceServiceStatus) -> dict[str, Any]:
    wire = status.to_wire()
    wire["conditions"] = sorted(wire.get("conditions", []), key=lambda item: str(item["type"]))
    return wire


def _last_decision(facts: Facts, previous: InferenceServiceStatus, *, refresh: bool) -> DecisionStatus | None:
    """The last change of the wanted replicas, or a later decision that something else bound at the same replicas.

    A service at a threshold has another binding every few ticks, so that waits for `refresh`. Losing demand, the
    fallback, and demand that is back do not: scaling that is out of order must not show late, nor longer than it is.
    """
    changes, shown = list(facts.memory.decisions), previous.last_decision
    if shown is None or changes != previous.decisions:
        shown = changes[0] if changes else None
    if facts.decision is None:
        return shown
    now = entry(facts.decision, facts.decision.desired)
    if shown is None:
        return now
    differs = (shown.binding, shown.reason) != (now.binding, now.reason)
    return now if _disorder(shown) != _disorder(now) or (refresh and differs) else shown


def _disorder(decision: DecisionStatus) -> Binding | None:
    """Hold or Fallback where demand was unknown; None where it was followed."""
    blind = decision.binding is Binding.HOLD and decision.reason in WITHOUT_DEMAND
    return decision.binding if blind or decision.binding is Binding.FALLBACK else None


def _cold_start(facts: Facts) -> ColdStartStatus | None:
    template_hash = facts.seen.deployment.template.hash if facts.seen else None
    return coldstart.summary(facts.memory.cold_starts, template_hash)


def _forecast(facts: Facts, previous: ForecastStatus | None, *, now: datetime, refresh: bool) -> ForecastStatus | None:
    if facts.seen is None:
        return previous
    if facts.service is not None and facts.service.spec.scaling.predictive.mode == "Off":
        return None
    answer = facts.answer
    fresh = _figures(answer, facts.decision, facts.seen.tick_seconds, now) if answer else _unavailable(facts)
    if previous is None or refresh or (fresh.state, fresh.reason) != (previous.state, previous.reason):
        return fresh
    return previous


def _unavailable(facts: Facts) -> ForecastStatus:
    view = facts.seen.forecast if facts.seen else None
    return ForecastStatus(
        state=ForecastState.UNAVAILABLE,
        reason=view.reason if view else ForecastReason.NO_ANSWER,
        message=clip(view.message) if view else "",
    )


def _figures(answer: ServiceForecast, decision: Decision | None, tick_seconds: float, now: datetime) -> ForecastStatus:
    horizon = 2 * decision.lead_time_seconds + tick_seconds if decision else None
    return ForecastStatus(
        state=ForecastState(answer.state),
        reason=answer.reason,
        message=clip(answer.message),
        model=answer.model,
        quantile_percent=answer.quantile_percent,
        horizon_seconds=round(horizon) if horizon is not None else None,
        upper=_decimal(answer.upper),
        coverage_percent=answer.coverage_percent,
        skill_percent=answer.skill_percent,
        next_peak=_next_peak(answer.peaks, now),
        ready_at=wire_time(answer.ready_at) if answer.ready_at else None,
    )


def _decimal(value: float | None) -> str | None:
    """One decimal; unknown for what is no amount."""
    return f"{value:.1f}" if value is not None and math.isfinite(value) and value >= 0 else None


def _next_peak(peaks: list[PeakAnswer], now: datetime) -> Peak | None:
    coming = sorted((peak for peak in peaks if peak.end > now), key=lambda peak: peak.start)
    if not coming:
        return None
    first = coming[0]
    return Peak(start=wire_time(first.start), end=wire_time(first.end), replicas=first.replicas)
