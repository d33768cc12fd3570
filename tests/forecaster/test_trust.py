"""Why is prediction not active? Always a reason, and where waiting helps, until when."""

from dataclasses import replace
from typing import NamedTuple

import pytest

from warmfront_forecaster.domain.calibration import Scale
from warmfront_forecaster.domain.evaluation import Evaluation, Score
from warmfront_forecaster.domain.trust import Evidence, Reason, State, judge

NOW = 1_800_000_000.0
HOUR, DAY = 3_600.0, 86_400.0


def evaluation(coverage: float = 0.95, recent: float = 0.95, loss: float = 1.0, days: float = 7.0) -> Evaluation:
    champion = Score(
        model="Prophet", scale=Scale.ROOT, loss=loss, coverage=coverage, coverage_strict=coverage, coverage_recent=recent
    )
    return Evaluation(champion=champion, fitted=None, baseline_loss=1.2, scored_steps=int(days * 1_440), scores=(champion,))


GOOD = Evidence(now=NOW, fetched=True, as_of=NOW - 70, measured_seconds=10 * DAY, spacing_seconds=15.0, evaluation=evaluation())
NOTHING = Evidence(now=NOW, fetched=False)


class Case(NamedTuple):
    """What is known, and the verdict it deserves; `waits`: seconds until waiting alone may help."""

    evidence: Evidence
    state: State
    reason: Reason
    words: str
    waits: float | None = None


CASES = {
    "all is well": Case(
        evidence=GOOD,
        state=State.TRUSTED,
        reason=Reason.EVIDENCE_HOLDS,
        words="covered 95%",
    ),
    "just enrolled": Case(
        evidence=NOTHING,
        state=State.LEARNING,
        reason=Reason.FIRST_FIT_PENDING,
        words="being read",
    ),
    "Prometheus away from the start": Case(
        evidence=replace(NOTHING, fetch_error="refused"),
        state=State.LEARNING,
        reason=Reason.PROMETHEUS_UNAVAILABLE,
        words="refused",
    ),
    "no series": Case(
        evidence=replace(NOTHING, fetched=True),
        state=State.LEARNING,
        reason=Reason.NO_HISTORY,
        words="scraped",
        waits=2 * DAY,
    ),
    "a young service": Case(
        evidence=replace(GOOD, measured_seconds=39 * HOUR, evaluation=None),
        state=State.LEARNING,
        reason=Reason.NOT_ENOUGH_HISTORY,
        words="needs 9 h more history",
        waits=9 * HOUR,
    ),
    "Prometheus forgets too soon": Case(
        evidence=replace(GOOD, measured_seconds=DAY, retention_seconds=DAY),
        state=State.LEARNING,
        reason=Reason.RETENTION_TOO_SHORT,
        words="raise its retention",
    ),
    "not evaluated yet": Case(
        evidence=replace(GOOD, evaluation=None),
        state=State.LEARNING,
        reason=Reason.FIRST_FIT_PENDING,
        words="under way",
    ),
    "fits fail": Case(
        evidence=replace(GOOD, evaluation=None, fit_error="took too long"),
        state=State.SHADOW,
        reason=Reason.FIT_FAILED,
        words="took too long",
    ),
    "two steps late": Case(
        evidence=replace(GOOD, as_of=NOW - 180),
        state=State.TRUSTED,
        reason=Reason.EVIDENCE_HOLDS,
        words="covered",
    ),
    "data stopped": Case(
        evidence=replace(GOOD, as_of=NOW - 240),
        state=State.DEGRADED,
        reason=Reason.DATA_MISSING,
        words="no measurement for 4 min",
    ),
    "Prometheus stopped": Case(
        evidence=replace(GOOD, as_of=NOW - 240, fetch_error="refused"),
        state=State.DEGRADED,
        reason=Reason.DATA_MISSING,
        words="refused",
    ),
    "scraped too rarely": Case(
        evidence=replace(GOOD, spacing_seconds=30.0),
        state=State.SHADOW,
        reason=Reason.METRICS_TOO_COARSE,
        words="every 30 s",
    ),
    "no model left": Case(
        evidence=replace(GOOD, evaluation=replace(evaluation(), champion=None, left_out={"Prophet": "negative"})),
        state=State.SHADOW,
        reason=Reason.NO_USABLE_MODEL,
        words="Prophet: negative",
    ),
    "little to compare": Case(
        evidence=replace(GOOD, evaluation=evaluation(days=0.75)),
        state=State.SHADOW,
        reason=Reason.NOT_ENOUGH_EVIDENCE,
        words="needs 6 h more",
        waits=6 * HOUR,
    ),
    "covers too little": Case(
        evidence=replace(GOOD, evaluation=evaluation(coverage=0.87)),
        state=State.SHADOW,
        reason=Reason.COVERAGE_OUT_OF_RANGE,
        words="covered 87%",
    ),
    "today is unlike all days": Case(
        evidence=replace(GOOD, evaluation=evaluation(recent=0.79)),
        state=State.DEGRADED,
        reason=Reason.COVERAGE_BROKEN,
        words="only 79%",
        waits=DAY,
    ),
    "no better than the last value": Case(
        evidence=replace(GOOD, evaluation=evaluation(loss=1.3)),
        state=State.SHADOW,
        reason=Reason.NO_GAIN,
        words="worse than the last value",
    ),
    "as good as the last value": Case(
        evidence=replace(GOOD, evaluation=evaluation(loss=1.2)),
        state=State.TRUSTED,
        reason=Reason.EVIDENCE_HOLDS,
        words="covered",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_each_state_has_its_reason(case: Case):
    verdict = judge(case.evidence)
    assert (verdict.state, verdict.reason) == (case.state, case.reason)
    assert case.words in verdict.message
    assert verdict.ready_at == (None if case.waits is None else NOW + case.waits)


def test_less_history_than_asked_for_is_said_in_every_state():
    held = "History is 9.8 of the 28 days asked for"
    assert held in judge(replace(GOOD, held=held)).message
    assert held in judge(replace(GOOD, held=held, measured_seconds=DAY)).message


def test_the_message_is_one_sentence_a_human_reads():
    assert judge(GOOD).message == "Prophet covered 95% of the windows of 7.0 days, asked were 95%"
