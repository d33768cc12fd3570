"""Reads an engine's `/metrics`, and waits for what it shows."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import httpx
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families


@dataclass(frozen=True, kw_only=True)
class Reading:
    """All `vllm:` families at one moment."""

    families: dict[str, Metric]

    def value(self, sample: str, **labels: str) -> float:
        """The sum of a sample's series with these labels; a sample that is not there is an error, not zero."""
        found = [
            one.value
            for family in self.families.values()
            for one in family.samples
            if one.name == f"vllm:{sample}" and labels.items() <= one.labels.items()
        ]
        assert found, f"no sample vllm:{sample} with {labels}"
        return sum(found)


def read(http: httpx.Client) -> Reading:
    """Read now."""
    response = http.get("/metrics")
    assert response.status_code == httpx.codes.OK
    families = {family.name: family for family in text_string_to_metric_families(response.text)}
    return Reading(families={name: family for name, family in families.items() if name.startswith("vllm:")})


def wait_until(http: httpx.Client, holds: Callable[[Reading], bool], *, what: str, seconds: float = 20) -> Reading:
    """Poll until it holds; engines publish their numbers some time after the fact."""
    deadline = time.monotonic() + seconds
    while True:
        reading = read(http)
        if holds(reading):
            return reading
        assert time.monotonic() < deadline, f"not seen within {seconds} s: {what}"
        time.sleep(0.05)


def settled(http: httpx.Client) -> Reading:
    """A reading with nothing in flight."""
    return wait_until(
        http,
        lambda now: now.value("num_requests_running") == 0 and now.value("num_requests_waiting") == 0,
        what="an idle engine",
    )
