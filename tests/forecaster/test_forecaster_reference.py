"""The reference page names every reason, setting and metric that the code has, and no reason that it has not."""

import re
from pathlib import Path

import pytest

from warmfront_forecaster.domain.trust import Reason
from warmfront_forecaster.metrics import Metrics
from warmfront_forecaster.settings import Settings

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "forecaster.md").read_text(encoding="utf-8")


def test_every_reason_has_its_row_and_none_is_invented():
    rows = re.findall(r"^\| `([A-Z]\w+)` \| (?:Learning|Shadow|Trusted|Degraded) \|", PAGE, re.MULTILINE)
    assert sorted(rows) == sorted(reason.value for reason in Reason)


@pytest.mark.parametrize("name", Settings.model_fields)
def test_every_setting_is_named(name: str):
    assert f"`{name.upper()}`" in PAGE


def test_every_metric_is_named():
    for family in Metrics().registry.collect():
        short = family.name.removeprefix("warmfront_forecaster")
        assert family.name in PAGE or f"`{short}_total`" in PAGE, family.name
