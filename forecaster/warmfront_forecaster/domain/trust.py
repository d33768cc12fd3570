"""How far a forecast is trusted, why, and what would change that. Nothing here remembers: a restart judges the same."""

from dataclasses import dataclass
from enum import StrEnum

from warmfront_forecaster.domain.calendar import DAY_SECONDS
from warmfront_forecaster.domain.evaluation import COVERAGE_ABOVE, COVERAGE_BELOW, Evaluation, Score
from warmfront_forecaster.domain.series import STEP_SECONDS

LEAST_HISTORY_SECONDS = 2.0 * DAY_SECONDS  # with half a day, prediction cost 2.1 to 2.8 times the ideal; reacting 1.4
LEAST_SCORED_SECONDS = 1.0 * DAY_SECONDS
MISSING_STEPS = 2  # that may be missing at the end of the data
FRESH_SECONDS = (MISSING_STEPS + 1) * STEP_SECONDS  # one step is always still under way
BROKEN_BELOW = 0.15  # how far the last day's coverage may lie under the quantile
SCRAPES_PER_RATE = 4
MOST_SPACING_SECONDS = STEP_SECONDS / SCRAPES_PER_RATE


class State(StrEnum):
    """The same words as in status; planning's type has one more, for no answer at all."""

    LEARNING = "Learning"
    SHADOW = "Shadow"
    TRUSTED = "Trusted"
    DEGRADED = "Degraded"


class Reason(StrEnum):
    """Why. Stands in conditions, events and metrics."""

    UNKNOWN_TIMEZONE = "UnknownTimezone"
    FIRST_FIT_PENDING = "FirstFitPending"
    PROMETHEUS_UNAVAILABLE = "PrometheusUnavailable"
    NO_HISTORY = "NoHistory"
    NOT_ENOUGH_HISTORY = "NotEnoughHistory"
    RETENTION_TOO_SHORT = "RetentionTooShort"
    METRICS_TOO_COARSE = "MetricsTooCoarse"
    FIT_FAILED = "FitFailed"
    NO_USABLE_MODEL = "NoUsableModel"
    NOT_ENOUGH_EVIDENCE = "NotEnoughEvidence"
    COVERAGE_OUT_OF_RANGE = "CoverageOutOfRange"
    NO_GAIN = "NoGain"
    DATA_MISSING = "DataMissing"
    COVERAGE_BROKEN = "CoverageBroken"
    EVIDENCE_HOLDS = "EvidenceHolds"


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What is known about one service's data and models. Times in Unix seconds.

    `measured_seconds`: how much of the history window was measured. `retention_seconds`: what Prometheus says that it
    keeps (None: it does not say). `held`: a sentence where it holds less than was asked for. `spacing_seconds`: between
    scrapes (None: not known yet). `fetch_error`, `fit_error`: what went wrong last, None when nothing did.
    `unknown_timezone`: the one asked for, where there is none such.
    """

    now: float
    fetched: bool
    unknown_timezone: str | None = None
    as_of: float | None = None
    measured_seconds: float = 0.0
    retention_seconds: float | None = None
    held: str | None = None
    spacing_seconds: float | None = None
    fetch_error: str | None = None
    fit_error: str | None = None
    evaluation: Evaluation | None = None
    quantile: float = 0.95


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The trust state and its explanation; `ready_at` (Unix seconds): when it may change by waiting alone."""

    state: State
    reason: Reason
    message: str
    ready_at: float | None = None


def judge(evidence: Evidence) -> Verdict:
    """The first thing that stands in the way, in the order in which it would be met; else Trusted."""
    verdict = next((found for check in CHECKS if (found := check(evidence)) is not None), None) or _trusted(evidence)
    if evidence.held and verdict.reason is not Reason.RETENTION_TOO_SHORT:
        return Verdict(**{**vars(verdict), "message": f"{verdict.message}. {evidence.held}"})
    return verdict


def _timezone(evidence: Evidence) -> Verdict | None:
    """First of all: waiting for history would end in no fit."""
    if evidence.unknown_timezone is None:
        return None
    message = (
        f"scaling.predictive.timezone '{evidence.unknown_timezone}' is not in the IANA database: use a name such as Europe/Berlin"
    )
    return Verdict(state=State.SHADOW, reason=Reason.UNKNOWN_TIMEZONE, message=message)


def _data(evidence: Evidence) -> Verdict | None:
    if evidence.as_of is not None:
        return None
    if evidence.fetch_error:
        return Verdict(state=State.LEARNING, reason=Reason.PROMETHEUS_UNAVAILABLE, message=evidence.fetch_error)
    if not evidence.fetched:
        return Verdict(state=State.LEARNING, reason=Reason.FIRST_FIT_PENDING, message="history is being read")
    return Verdict(
        state=State.LEARNING,
        reason=Reason.NO_HISTORY,
        message="Prometheus holds no request counts of this service yet: is it scraped?",
        ready_at=evidence.now + LEAST_HISTORY_SECONDS,
    )


def _history(evidence: Evidence) -> Verdict | None:
    missing = LEAST_HISTORY_SECONDS - evidence.measured_seconds
    if missing <= 0:
        return None
    kept = evidence.retention_seconds
    if kept is not None and kept < LEAST_HISTORY_SECONDS:
        message = f"Prometheus keeps {_duration(kept)}, a forecast needs 2 days: raise its retention"
        return Verdict(state=State.LEARNING, reason=Reason.RETENTION_TOO_SHORT, message=message)
    message = f"needs {_duration(missing)} more history"
    return Verdict(state=State.LEARNING, reason=Reason.NOT_ENOUGH_HISTORY, message=message, ready_at=evidence.now + missing)


def _evaluated(evidence: Evidence) -> Verdict | None:
    if evidence.evaluation is not None:
        return None
    if evidence.fit_error:
        return Verdict(state=State.SHADOW, reason=Reason.FIT_FAILED, message=f"{evidence.fit_error}; it will be tried again")
    return Verdict(state=State.LEARNING, reason=Reason.FIRST_FIT_PENDING, message="the first evaluation is under way")


def _fresh(evidence: Evidence) -> Verdict | None:
    age = evidence.now - (evidence.as_of or 0.0)
    if age <= FRESH_SECONDS:
        return None
    cause = evidence.fetch_error or "Prometheus answers, but holds no newer request counts of this service: is it scraped?"
    message = f"no measurement for {_duration(age)} ({cause}); trusted again as soon as there is one"
    return Verdict(state=State.DEGRADED, reason=Reason.DATA_MISSING, message=message)


def _spacing(evidence: Evidence) -> Verdict | None:
    spacing = evidence.spacing_seconds
    if spacing is None or spacing <= MOST_SPACING_SECONDS:
        return None
    message = f"scraped every {spacing:.0f} s: rates over a minute need {MOST_SPACING_SECONDS:.0f} s or less"
    return Verdict(state=State.SHADOW, reason=Reason.METRICS_TOO_COARSE, message=message)


def _champion(evidence: Evidence) -> Verdict | None:
    evaluation = evidence.evaluation
    if evaluation is None or evaluation.champion is None:
        told = "; ".join(f"{name}: {why}" for name, why in (evaluation.left_out if evaluation else {}).items())
        return Verdict(
            state=State.SHADOW, reason=Reason.NO_USABLE_MODEL, message=f"no model could be scored ({told or 'too many gaps'})"
        )
    missing = LEAST_SCORED_SECONDS - evaluation.scored_seconds
    if missing <= 0:
        return None
    message = f"needs {_duration(missing)} more of forecasts to compare with what came"
    return Verdict(state=State.SHADOW, reason=Reason.NOT_ENOUGH_EVIDENCE, message=message, ready_at=evidence.now + missing)


def _coverage(evidence: Evidence) -> Verdict | None:
    champion, quantile = _scored(evidence), evidence.quantile
    if champion.calibrated(quantile):
        return None
    message = (
        f"{champion.model} covered {champion.coverage:.0%} of the windows, asked were {quantile:.0%} "
        f"({quantile - COVERAGE_BELOW:.0%} to {min(1.0, quantile + COVERAGE_ABOVE):.0%} are accepted)"
    )
    return Verdict(state=State.SHADOW, reason=Reason.COVERAGE_OUT_OF_RANGE, message=message)


def _recent_coverage(evidence: Evidence) -> Verdict | None:
    champion = _scored(evidence)
    if champion.coverage_recent >= evidence.quantile - BROKEN_BELOW:
        return None
    message = f"in the last 24 h {champion.model} covered only {champion.coverage_recent:.0%}, asked were {evidence.quantile:.0%}"
    return Verdict(state=State.DEGRADED, reason=Reason.COVERAGE_BROKEN, message=message, ready_at=evidence.now + DAY_SECONDS)


def _gain(evidence: Evidence) -> Verdict | None:
    champion = _scored(evidence)
    baseline = evidence.evaluation.baseline_loss if evidence.evaluation else 0.0
    if champion.loss <= baseline:
        return None
    message = f"{champion.model} was worse than the last value (loss {champion.loss:.3g} against {baseline:.3g})"
    return Verdict(state=State.SHADOW, reason=Reason.NO_GAIN, message=message)


CHECKS = (_timezone, _data, _history, _evaluated, _fresh, _spacing, _champion, _coverage, _recent_coverage, _gain)


def _scored(evidence: Evidence) -> Score:
    if evidence.evaluation is None or evidence.evaluation.champion is None:
        raise AssertionError("checks are in order: a champion was found before")
    return evidence.evaluation.champion


def _trusted(evidence: Evidence) -> Verdict:
    champion = _scored(evidence)
    days = evidence.evaluation.scored_seconds / DAY_SECONDS if evidence.evaluation else 0.0
    message = (
        f"{champion.model} covered {champion.coverage:.0%} of the windows of {days:.1f} days, asked were {evidence.quantile:.0%}"
    )
    return Verdict(state=State.TRUSTED, reason=Reason.EVIDENCE_HOLDS, message=message)


def _duration(seconds: float) -> str:
    """In one unit, as people say it."""
    for size, unit in ((2 * DAY_SECONDS, "d"), (2 * 3_600, "h"), (120, "min")):
        if seconds >= size:
            return f"{seconds / (size / 2):.0f} {unit}"
    return f"{max(1, round(seconds))} s"
