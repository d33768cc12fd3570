"""Log lines, the same in every component: one JSON object each for collectors, or text for people."""

import logging
from collections.abc import Mapping
from typing import Literal

from pythonjsonlogger.json import JsonFormatter

_NAMES = {"levelname": "level", "name": "logger", "exc_info": "exception"}


def formatter(style: Literal["json", "text"]) -> logging.Formatter:
    """JSON: `time` (ISO 8601, UTC), `level`, `logger`, `message`, and `exception` where there is one."""
    if style == "text":
        return logging.Formatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s")
    return JsonFormatter(["levelname", "name", "message"], rename_fields=_NAMES, timestamp="time", json_ensure_ascii=False)


def configure(level: str, style: Literal["json", "text"], *, quiet: Mapping[str, str]) -> None:
    """Send everything of `level` and above to standard error; `quiet` names chatty loggers with their own levels."""
    handler = logging.StreamHandler()
    handler.setFormatter(formatter(style))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for name, least in quiet.items():
        logging.getLogger(name).setLevel(least)
