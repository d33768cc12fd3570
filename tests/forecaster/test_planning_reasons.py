"""The documented set of reasons is the set in the code, and each has its sentence."""

import re
from pathlib import Path

from warmfront_forecaster.planning.messages import _SENTENCES
from warmfront_forecaster.planning.reasons import ForecastUse, Reason

PAGE = Path(__file__).parents[2] / "docs/reference/reasons.md"


def documented(heading: str) -> list[str]:
    """First cells of the table under a heading."""
    section = PAGE.read_text().split(f"## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"^\| `(\w+)` \|", section, flags=re.MULTILINE)


def test_every_reason_is_documented_once_and_no_other() -> None:
    assert sorted(documented("Why the replicas are what they are")) == sorted(Reason)
    assert sorted(documented("Whether the forecast took part")) == sorted(ForecastUse)


def test_every_reason_has_a_sentence() -> None:
    assert set(_SENTENCES) == set(Reason)
