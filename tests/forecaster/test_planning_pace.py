"""How fast replicas change, when they may go down, and what is carried between ticks."""

from datetime import UTC, datetime, timedelta

import pytest

from warmfront_forecaster.planning import Binding, Candidates, Decision, PastWant, ReplicaCounts, remember, remember_change
from warmfront_forecaster.planning.pace import fewest_allowed, most_allowed
from warmfront_forecaster.planning.reasons import Reason
from warmfront_forecaster.planning.scale_down import WINDOW, WINDOW_TRUSTED, Descent, Limits, descend, most_wanted, watched

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def ago(seconds: float, replicas: int, without: int | None = None) -> PastWant:
    return PastWant(time=NOW - timedelta(seconds=seconds), replicas=replicas, without_forecast=without)


def decided(current: int, desired: int, want: int | None = None, without: int | None = None) -> Decision:
    return Decision(
        time=NOW,
        current=current,
        desired=desired,
        binding=Binding.REACTIVE,
        reason=Reason.DEMAND_MEASURED,
        message="",
        lead_time_seconds=300,
        candidates=Candidates(want=want, without_forecast=without),
    )


@pytest.mark.parametrize(
    ("changes", "held", "expected"),
    [
        pytest.param([], 1, 5, id="no change known: from what is held, four more"),
        pytest.param([], 10, 20, id="or twice as many"),
        pytest.param([ago(30, 1), ago(30, 5)], 5, 5, id="the step of this minute is used up"),
        pytest.param([ago(61, 1), ago(61, 5)], 5, 10, id="a minute later it is free again"),
        pytest.param([ago(60, 1), ago(60, 5)], 5, 10, id="at the minute itself too"),
        pytest.param([ago(200, 8), ago(20, 7)], 7, 14, id="after a decrease from the lower number"),
        pytest.param([ago(-30, 1)], 6, 12, id="a change from the future (clock set back) counts for nothing"),
    ],
)
def test_pace_up(changes: list[PastWant], held: int, expected: int) -> None:
    assert most_allowed(changes, held, NOW) == expected


@pytest.mark.parametrize(
    ("changes", "held", "expected"),
    [
        pytest.param([], 5, 4, id="one at a time"),
        pytest.param([], 40, 36, id="or ten percent"),
        pytest.param([], 29, 27, id="ten percent rounded down"),
        pytest.param([], 0, 0, id="never below none"),
        pytest.param([ago(300, 5), ago(60, 4)], 4, 4, id="the step of these two minutes is used up"),
        pytest.param([ago(300, 5), ago(120, 4)], 4, 3, id="two minutes later it is free again"),
        pytest.param([ago(300, 2), ago(60, 6)], 6, 5, id="just grown: from the new number"),
    ],
)
def test_pace_down(changes: list[PastWant], held: int, expected: int) -> None:
    assert fewest_allowed(changes, held, NOW) == expected


def limits(
    *,
    want: int = 1,
    held: int = 4,
    window: int = 1,
    seen: bool = True,
    consolidated: int = 1,
    payback: int | None = None,
    pace: int = 1,
) -> Limits:
    return Limits(
        want=want, held=held, down_window=window, window_watched=seen, consolidated=consolidated, payback=payback, pace=pace
    )


def pods(ready: int, starting: int = 0, unschedulable: int = 0, *, rolling: bool = False) -> ReplicaCounts:
    wanted = ready + starting + unschedulable
    return ReplicaCounts(wanted=wanted, ready=ready, starting=starting, unschedulable=unschedulable, rolling=rolling)


@pytest.mark.parametrize(
    ("given", "fleet", "expected"),
    [
        pytest.param(limits(), pods(4), Descent(replicas=1), id="nothing stands against it"),
        pytest.param(limits(window=3), pods(4), Descent(replicas=3, reason=Reason.DOWN_WINDOW), id="wanted a moment ago"),
        pytest.param(limits(window=9), pods(4), Descent(replicas=4, reason=Reason.DOWN_WINDOW), id="a descent never climbs"),
        pytest.param(limits(payback=2), pods(4), Descent(replicas=2, reason=Reason.FORECAST_PAYBACK), id="wanted back soon"),
        pytest.param(limits(consolidated=3), pods(4), Descent(replicas=3, reason=Reason.LOAD_DOES_NOT_FIT), id="load must fit"),
        pytest.param(limits(pace=3), pods(4), Descent(replicas=3, reason=Reason.SCALE_DOWN_PACE), id="one at a time"),
        pytest.param(limits(seen=False), pods(4), Descent(replicas=4, reason=Reason.HISTORY_TOO_SHORT), id="after a restart"),
        pytest.param(
            limits(),
            pods(4, rolling=True),
            Descent(replicas=4, reason=Reason.ROLLOUT_UNDER_WAY),
            id="no warm pod goes in a rollout",
        ),
        pytest.param(limits(), pods(0, 4), Descent(replicas=4, reason=Reason.NO_READY_REPLICA), id="nobody counts arrivals"),
        pytest.param(
            limits(pace=3),
            pods(2, unschedulable=2),
            Descent(replicas=2, reason=Reason.PENDING_CANCELLED),
            id="pending first, at once",
        ),
        pytest.param(
            limits(seen=False), pods(1, 3, rolling=True), Descent(replicas=1), id="pending ones wait for no window or rollout"
        ),
        pytest.param(
            limits(window=3),
            pods(1, 3),
            Descent(replicas=3, reason=Reason.DOWN_WINDOW),
            id="noise does not cancel a starting pod",
        ),
        pytest.param(
            limits(payback=4),
            pods(1, 3),
            Descent(replicas=4, reason=Reason.FORECAST_PAYBACK),
            id="a starting pod wanted soon stays",
        ),
    ],
)
def test_the_way_down(given: Limits, fleet: ReplicaCounts, expected: Descent) -> None:
    assert descend(given, fleet) == expected


def test_the_window_holds_the_most_wanted_and_this_tick() -> None:
    past = [ago(301, 9), ago(300, 5), ago(15, 2), ago(-15, 8)]
    assert most_wanted(past, NOW, WINDOW, 1) == 5
    assert most_wanted(past, NOW, WINDOW_TRUSTED, 1) == 2
    assert most_wanted(past, NOW, WINDOW_TRUSTED, 3) == 3


@pytest.mark.parametrize(
    ("seconds_ago", "expected"),
    [
        pytest.param([], False, id="nothing seen"),
        pytest.param(range(15, 300, 15), False, id="not yet the whole window"),
        pytest.param(range(15, 301, 15), True, id="the whole window"),
        pytest.param([*range(15, 100, 15), *range(165, 301, 15)], False, id="a silence of over four ticks breaks it"),
        pytest.param([*range(15, 100, 15), *range(150, 301, 15)], True, id="four ticks late is no silence"),
        pytest.param([600], False, id="the operator was away"),
    ],
)
def test_a_window_counts_only_when_it_was_watched(seconds_ago: list[int], expected: bool) -> None:
    assert watched([ago(seconds, 1) for seconds in seconds_ago], NOW, WINDOW, 15) is expected


def test_remember_keeps_the_window_and_the_one_before_it() -> None:
    past = (ago(400, 1), ago(330, 2), ago(280, 3), ago(-5, 4))
    assert remember(past, decided(3, 3, want=5), NOW) == (ago(330, 2), ago(280, 3), ago(0, 5))


def test_a_tick_that_wanted_nothing_known_wanted_what_it_held() -> None:
    assert remember((), decided(3, 4), NOW)[-1].replicas == 4


def test_the_first_change_remembers_where_it_began() -> None:
    changes = remember_change((), decided(1, 5, without=1), NOW)
    assert [(change.replicas, change.without_forecast) for change in changes] == [(1, 1), (5, 1)]
    assert most_allowed(changes, 5, NOW + timedelta(seconds=15)) == 5


def test_an_unchanged_number_adds_nothing_and_is_never_forgotten() -> None:
    changes = remember_change((), decided(3, 3, without=3), NOW)
    later = remember_change(changes, decided(3, 3, without=3), NOW + timedelta(hours=5))
    assert later == changes == (ago(0, 3, 3),)
