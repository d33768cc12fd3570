"""What is asked of Prometheus, and what its answers become; with a client that evaluates nothing but keeps the questions."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest

from warmfront_forecaster.adapters.prometheus_client import Sample, Series
from warmfront_forecaster.adapters.prometheus_source import PrometheusSource, ServiceKey, rate_window_seconds

CHAT = ServiceKey(namespace="ml", name="chat")
NOW = 1_800_000_000 // 600 * 600
WHERE = 'inferenceservice_namespace="ml",inferenceservice="chat"'
DAY = 86_400


@dataclass
class Client:
    """Answers instant queries from a table, and range queries by a function of time."""

    instants: dict[str, float] = field(default_factory=dict)
    ranges: Callable[[str, float], float | None] = lambda _promql, _time: None
    asked: list[tuple[str, float, float, int]] = field(default_factory=list)

    def query(self, promql: str, at: float | None = None) -> list[Sample]:
        self.asked.append((promql, at or 0.0, at or 0.0, 0))
        return [Sample(labels={}, time=0.0, value=value) for part, value in self.instants.items() if part in promql]

    def query_range(self, promql: str, start: float, end: float, step_seconds: int) -> list[Series]:
        self.asked.append((promql, start, end, step_seconds))
        times = [float(t) for t in range(int(start), int(end) + 1, step_seconds)]
        points = [(t, value) for t in times if (value := self.ranges(promql, t)) is not None]
        return [Series(labels={}, times=tuple(t for t, _ in points), values=tuple(v for _, v in points))] if points else []


def test_the_last_three_days_are_read_by_the_minute_and_the_rest_by_ten():
    client = Client(ranges=lambda promql, _time: 2.0 if "arrivals" in promql else 100.0)
    found = PrometheusSource(client).traffic(CHAT, NOW - 10 * DAY, NOW, 15.0)
    arrivals = [(start, end, step) for promql, start, end, step in client.asked if "arrivals" in promql]
    assert sorted(arrivals) == [(NOW - 10 * DAY, NOW - 3 * DAY, 600), (NOW - 3 * DAY, NOW, 60)]
    assert len(found.arrivals) == 10 * 1_440 + 1
    assert (found.arrivals == 2.0).all()
    assert (found.prompt_tokens[:-1] == 100.0).all()


def test_the_newest_minutes_alone_are_one_short_question_each():
    client = Client(ranges=lambda _promql, time: time)
    found = PrometheusSource(client).traffic(CHAT, NOW - 300, NOW + 60, 15.0)
    assert found.arrivals.tolist() == [float(NOW + offset) for offset in range(-300, 61, 60)]
    assert found.prompt_tokens.tolist()[:6] == [float(NOW)] * 6  # the ten minutes that end at NOW
    assert np.isnan(found.prompt_tokens[6])


def test_the_queries_are_the_documented_ones():
    client = Client()
    PrometheusSource(client).traffic(CHAT, NOW - 600, NOW, 15.0)
    served = f'sum(increase(warmfront_gateway_requests_total{{{WHERE},outcome="served"}}[600s]))'
    assert [promql for promql, *_ in client.asked] == [
        f"sum(rate(warmfront_gateway_arrivals_total{{{WHERE}}}[60s]))",
        f"sum(increase(warmfront_gateway_prompt_tokens_total{{{WHERE}}}[600s])) / {served}",
        f"sum(increase(warmfront_gateway_output_tokens_total{{{WHERE}}}[600s])) / {served}",
    ]


def test_what_prometheus_does_not_hold_is_missing():
    found = PrometheusSource(Client()).traffic(CHAT, NOW - 600, NOW, 15.0)
    assert np.isnan(found.arrivals).all()


@pytest.mark.parametrize(("spacing", "window"), [(None, 60), (15.0, 60), (30.0, 120), (60.0, 240)])
def test_a_rate_is_taken_over_four_scrapes_at_least(spacing: float | None, window: int):
    assert rate_window_seconds(spacing) == window


def test_the_spacing_is_that_of_the_fullest_minute():
    assert PrometheusSource(Client(instants={"count_over_time": 4.0})).spacing_seconds(CHAT) == 15.0
    assert PrometheusSource(Client()).spacing_seconds(CHAT) is None


@pytest.mark.parametrize(
    ("instants", "retention", "holds"),
    [
        ({"retention_limit": 15.0 * DAY, "count(up)": 3.0}, 15.0 * DAY, True),
        ({"retention_limit": 0.0}, None, False),
        ({}, None, False),
    ],
    ids=["says fifteen days and holds more than asked", "limited by size only", "says nothing, holds nothing"],
)
def test_how_much_prometheus_keeps(instants: dict[str, float], retention: float | None, holds: bool):
    found = PrometheusSource(Client(instants=instants)).holdings(CHAT, NOW - 28 * DAY)
    assert (found.retention_seconds, found.holds_start) == (retention, holds)


def test_a_name_cannot_carry_a_query_of_its_own():
    client = Client()
    PrometheusSource(client).spacing_seconds(ServiceKey(namespace='a"} or vector(1) #', name="x\\\n"))
    assert 'inferenceservice_namespace="a\\"} or vector(1) #",inferenceservice="x\\\\\\n"' in client.asked[0][0]
