"""The engine's metrics under the service's labels. Pure.

Prometheus drops a whole scrape for one bad line, and the gateway's own series with it. So every line of the engine is checked
against the text format (0.0.4), and what does not fit is left out: broken lines, names that are the gateway's own, samples that
already carry one of the two labels.
"""

import re
from collections.abc import Mapping

from warmfront_runtime.metrics import CONSTANT_LABELS, LABEL_SERVICE, PREFIX

_LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*"'
_NUMBER = r"[+-]?(?:\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|[Ii]nf|[Nn]a[Nn])"
_SAMPLE = re.compile(
    rf"(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)[ \t]*(?:\{{[ \t]*(?P<labels>{_LABEL}(?:[ \t]*,[ \t]*{_LABEL})*)?[ \t]*,?[ \t]*\}})?"
    rf"[ \t]*(?P<value>(?<=[ \t}}]){_NUMBER}(?:[ \t]+-?\d+)?)[ \t]*"
)
_COMMENT = re.compile(r"# (?:HELP|TYPE) (?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*) .*")
_LABEL_NAME = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="(?:[^"\\]|\\.)*"')


def relabelled(text: str, labels: Mapping[str, str]) -> str:
    """`text` with `labels` added to each sample; ends with a line feed unless empty."""
    added = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())
    lines = [line for raw in text.split("\n") if (line := _line(raw.rstrip("\r"), added)) is not None]
    return "".join(f"{line}\n" for line in lines)


def _line(raw: str, added: str) -> str | None:
    comment = _COMMENT.fullmatch(raw)
    if comment is not None:
        return None if comment["name"].startswith(PREFIX) else raw
    sample = _SAMPLE.fullmatch(raw)
    if sample is None or sample["name"].startswith(PREFIX) or _carries_ours(sample["labels"] or ""):
        return None
    own = sample["labels"]
    return f"{sample['name']}{{{added}{',' + own if own else ''}}} {sample['value']}"


def _carries_ours(labels: str) -> bool:
    return LABEL_SERVICE in labels and not set(_LABEL_NAME.findall(labels)).isdisjoint(CONSTANT_LABELS)


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
