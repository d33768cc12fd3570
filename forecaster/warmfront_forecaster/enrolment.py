"""One service that is forecast: what is known of it, and the answer that follows. No I/O, no clock of its own."""

import logging
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np

from warmfront_forecaster.adapters.prometheus_source import Holdings, ServiceKey
from warmfront_forecaster.contract import CapacityQuery, PeakAnswer, ServiceForecast, ServiceQuery
from warmfront_forecaster.domain.calendar import DAY_SECONDS, zone_known
from warmfront_forecaster.domain.demand import ReplicaRates, Traffic, demand, join
from warmfront_forecaster.domain.evaluation import Evaluation
from warmfront_forecaster.domain.peaks import peaks
from warmfront_forecaster.domain.predictor import NOMINAL_AGE_SECONDS, PEAK_SLOT_SECONDS, LeadTime, Predictor, predictor
from warmfront_forecaster.domain.series import STEP_SECONDS, Series
from warmfront_forecaster.domain.trust import LEAST_HISTORY_SECONDS, Evidence, Verdict, judge
from warmfront_forecaster.errors import ModelError
from warmfront_forecaster.fitting import FitJob
from warmfront_forecaster.planning.types import ForecastState

LOG = logging.getLogger(__name__)

STALE_SECONDS = 900.0  # a path whose newest step is older is no forecast any more
DIGITS = 4  # of demand: status and logs are for people


@dataclass(frozen=True, kw_only=True, eq=False)
class History:
    """Demand of one service, and what is read off it for each answer. Times in Unix seconds, None: nothing measured."""

    traffic: Traffic
    capacity: CapacityQuery
    series: Series
    measured_seconds: float
    oldest: int | None
    newest: int | None
    most: float | None

    @classmethod
    def of(cls, traffic: Traffic, capacity: CapacityQuery) -> "History":
        """Turn traffic into demand with a capacity."""
        rates = ReplicaRates(
            prefill_tokens_per_second=capacity.prefill_tokens_per_second,
            decode_tokens_per_second=capacity.decode_tokens_per_second,
        )
        series = demand(traffic, rates)
        measured = np.flatnonzero(np.isfinite(series.values))
        some = len(measured) > 0
        return cls(
            traffic=traffic,
            capacity=capacity,
            series=series,
            measured_seconds=float(len(measured) * STEP_SECONDS),
            oldest=series.start + STEP_SECONDS * int(measured[0]) if some else None,
            newest=series.start + STEP_SECONDS * int(measured[-1]) if some else None,
            most=float(series.values[measured].max()) if some else None,
        )


@dataclass(kw_only=True)
class Enrolled:
    """What is held in memory of one service.

    Data comes in from threads: every change puts one whole new value in the place of an old one.
    """

    query: ServiceQuery
    asked_at: float  # Unix seconds
    history: History | None = None
    holdings: Holdings = field(default_factory=Holdings)
    fetch_error: str | None = None
    evaluation: Evaluation | None = None
    evaluated_as: tuple[object, ...] = ()  # what the evaluation depends on, as it was then
    fit_error: str | None = None
    predictor: Predictor | None = None

    @property
    def key(self) -> ServiceKey:
        """Which service."""
        return ServiceKey(namespace=self.query.namespace, name=self.query.name)

    @property
    def lead(self) -> LeadTime:
        """How far ahead the service's decision looks, as asked last."""
        return LeadTime(seconds=self.query.lead_time_seconds, tick_seconds=self.query.tick_seconds)

    @property
    def quantile(self) -> float:
        """Asked for, in (0, 1)."""
        return self.query.quantile_percent / 100

    @property
    def reevaluate(self) -> bool:
        """Whether the evaluation at hand answers another question than the one asked now."""
        return self.evaluation is not None and self.evaluated_as != self._question()

    def history_start(self, end: int) -> int:
        """From when on history is wanted."""
        return end - self.query.history_days * DAY_SECONDS

    def asked(self, query: ServiceQuery, now: float) -> None:
        """A new question. The start-up time moves by itself: the margins follow at once, the evaluation when it is due."""
        self.query, self.asked_at = query, now
        if self.history is not None and self.history.capacity != query.capacity:
            self.history = History.of(self.history.traffic, query.capacity)
            self.predict()
        elif self.predictor is not None and _windows(self.predictor.lead) != _windows(self.lead):
            self.predict()

    def read(self, traffic: Traffic, holdings: Holdings) -> None:
        """History has come, all of it or what is new."""
        if self.history is not None:
            traffic = join(self.history.traffic, traffic, self.query.history_days * DAY_SECONDS)
        self.history = History.of(traffic, self.query.capacity)
        self.holdings, self.fetch_error = holdings, None
        self.predict()

    def fit_job(self) -> FitJob | None:
        """What to evaluate now; None: there is too little history to make it worthwhile, or no such timezone."""
        history, question = self.history, self._question()
        if history is None or history.measured_seconds < LEAST_HISTORY_SECONDS or self._unknown_timezone:
            return None
        same_demand = self.evaluated_as[:2] == question[:2]
        self.evaluated_as = question
        return FitJob(
            series=history.series,
            window=self.lead.upper_window(NOMINAL_AGE_SECONDS),
            quantile=self.quantile,
            timezone=self.query.timezone,
            earlier=self.evaluation.fits if self.evaluation and same_demand else {},
        )

    def fit_came(self, evaluation: Evaluation) -> None:
        """An evaluation has come back."""
        self.evaluation, self.fit_error = evaluation, None
        self.predict()

    def fit_failed(self, message: str) -> None:
        """The previous forecast does for one refit, then there is none."""
        if self.fit_error is not None:
            self.evaluation, self.predictor = None, None
        self.fit_error = message

    def predict(self) -> None:
        """Work the forecast out from the newest data. Where that fails there is none, and the reason is logged."""
        history, evaluation = self.history, self.evaluation
        if history is None or evaluation is None or evaluation.champion is None or evaluation.fitted is None:
            self.predictor = None
            return
        try:
            self.predictor = predictor(evaluation.fitted, evaluation.champion.scale, history.series, self.lead, self.quantile)
        except ModelError as error:
            LOG.warning("no forecast for %s/%s: %s", self.query.namespace, self.query.name, error)
            self.predictor = None

    def evidence(self, now: float) -> Evidence:
        """What trust is judged on."""
        history = self.history
        return Evidence(
            now=now,
            fetched=history is not None,
            unknown_timezone=self._unknown_timezone,
            as_of=history.newest if history else None,
            measured_seconds=history.measured_seconds if history else 0.0,
            retention_seconds=self.holdings.retention_seconds,
            held=self._held(now),
            spacing_seconds=self.holdings.spacing_seconds,
            fetch_error=self.fetch_error,
            fit_error=self.fit_error,
            evaluation=self.evaluation,
            quantile=self.quantile,
        )

    def verdict(self, now: float) -> Verdict:
        """The trust state now."""
        return judge(self.evidence(now))

    def answer(self, now: float) -> ServiceForecast:
        """The forecast as of `now` (Unix seconds). What is not known is left out."""
        evidence = self.evidence(now)
        verdict = judge(evidence)
        return ServiceForecast(
            namespace=self.query.namespace,
            name=self.query.name,
            state=ForecastState(verdict.state.value),
            reason=verdict.reason.value,
            message=verdict.message,
            ready_at=_moment(verdict.ready_at),
            quantile_percent=self.query.quantile_percent,
            history_seconds=evidence.measured_seconds,
            as_of=_moment(evidence.as_of),
            max_demand_seen=self.history.most if self.history else None,
        ).model_copy(update=self._scores() | self._numbers(now))

    def _held(self, now: float) -> str | None:
        """A sentence where less history is there than was asked for because Prometheus has no more."""
        first = self.history.oldest if self.history else None
        if self.holdings.holds_start or first is None:
            return None
        kept = self.holdings.retention_seconds
        cause = f"keeps {kept / DAY_SECONDS:.0f} days" if kept else "has nothing older (by default it keeps 15 days)"
        return f"History is {(now - first) / DAY_SECONDS:.1f} of the {self.query.history_days} days asked for: Prometheus {cause}"

    def _scores(self) -> dict[str, object]:
        evaluation = self.evaluation
        if evaluation is None or evaluation.champion is None:
            return {}
        skill = evaluation.skill
        return {
            "model": evaluation.champion.model,
            "coverage_percent": round(100 * evaluation.champion.coverage),
            "skill_percent": None if skill is None else round(100 * skill),
        }

    def _numbers(self, now: float) -> dict[str, object]:
        forecast = self.predictor
        if forecast is None or self._unknown_timezone or now - forecast.as_of > STALE_SECONDS:
            return {}
        return {
            "upper": round(forecast.upper(now), DIGITS),
            "median": round(forecast.median(now), DIGITS),
            "peaks": self._peaks(forecast, now),
        }

    def _peaks(self, forecast: Predictor, now: float) -> list[PeakAnswer]:
        begins, uppers = forecast.slots(now)
        found = peaks(begins, uppers, PEAK_SLOT_SECONDS, self.query.capacity.target_utilization, self.query.replicas)
        return [PeakAnswer(start=_at(max(peak.start, now)), end=_at(peak.end), replicas=peak.replicas) for peak in found]

    @property
    def _unknown_timezone(self) -> str | None:
        return None if zone_known(self.query.timezone) else self.query.timezone

    def _question(self) -> tuple[object, ...]:
        """What an evaluation depends on; the first two change the demand or its calendar, and with it every fit."""
        return (self.query.capacity, self.query.timezone, self.query.quantile_percent)


def _windows(lead: LeadTime) -> object:
    return lead.upper_window(NOMINAL_AGE_SECONDS), lead.median_window(NOMINAL_AGE_SECONDS)


def _at(time: float) -> datetime:
    return datetime.fromtimestamp(time, UTC)


def _moment(time: float | None) -> datetime | None:
    return None if time is None else _at(round(time))
