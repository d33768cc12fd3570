"""The reference pages name what there is, and nothing else."""

import re
from pathlib import Path

from warmfront_runtime.errors import Outcome
from warmfront_runtime.gateway.proxy import ROUTES
from warmfront_runtime.metrics import PHASES, GatewayMetrics
from warmfront_runtime.settings import ENV_PREFIX, GatewaySettings

PAGES = Path(__file__).parents[2] / "docs" / "reference"
GATEWAY = (PAGES / "gateway.md").read_text()
METRICS = (PAGES / "metrics-gateway.md").read_text()


def test_each_series_is_listed_with_its_type():
    families = GatewayMetrics(service="chat", namespace="ml").registry.collect()
    exported = {(family.name + "_total" if family.type == "counter" else family.name, family.type) for family in families}
    listed = set(re.findall(r"^\| `(warmfront_\w+)` \| (\w+) \|", METRICS, flags=re.MULTILINE))
    assert listed == exported


def test_each_outcome_and_phase_is_listed():
    assert set(re.findall(r"^\| `(\w+)` \| .* \| (?:yes|no) \|$", METRICS, flags=re.MULTILINE)) == {o.value for o in Outcome}
    assert all(f"`{phase}`" in METRICS for phase in PHASES)


def test_each_setting_is_listed_with_its_default():
    listed = dict(re.findall(rf"^\| `{ENV_PREFIX}(\w+)` \| `([^`]*)` \|", GATEWAY, flags=re.MULTILINE))
    assert listed == {name.upper(): f"{field.default}" for name, field in GatewaySettings.model_fields.items()}


def test_each_route_is_listed_and_whether_it_is_demand():
    listed = re.findall(r"^\| `(\w+) (/\S+)` \| (yes|no) \|$", GATEWAY, flags=re.MULTILINE)
    assert listed == [(route.method, route.path, "yes" if route.is_demand else "no") for route in ROUTES]
