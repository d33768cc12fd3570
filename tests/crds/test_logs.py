"""Log lines: one JSON object each, or text."""

import json
import logging
from collections.abc import Iterator

import pytest

from warmfront_api import logs


def record(message: str = "no %s\nhere", error: Exception | None = None) -> logging.LogRecord:
    raised = (type(error), error, None) if error else None
    return logging.LogRecord("warmfront.x", logging.ERROR, __file__, 1, message, ("forecast",), raised)


def test_a_line_is_one_json_object_that_says_when_how_bad_who_and_what():
    (line,) = logs.formatter("json").format(record()).splitlines()
    said = json.loads(line)
    assert (said["level"], said["logger"], said["message"]) == ("ERROR", "warmfront.x", "no forecast\nhere")
    assert said["time"].endswith("+00:00")
    assert set(said) == {"time", "level", "logger", "message"}


def test_a_traceback_stays_in_its_line():
    (line,) = logs.formatter("json").format(record(error=ValueError("two\nlines"))).splitlines()
    assert "ValueError: two\nlines" in json.loads(line)["exception"]


def test_text_is_for_people():
    assert logs.formatter("text").format(record("no %s")).endswith("ERROR   warmfront.x: no forecast")


@pytest.fixture
def restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def test_chatty_loggers_are_held_to_their_own_level(restored: None, capsys: pytest.CaptureFixture[str]):  # noqa: ARG001 - puts logging back
    logs.configure("INFO", "text", quiet={"chatty": "ERROR"})
    logging.getLogger("chatty").warning("unheard")
    logging.getLogger("ours").info("heard")
    assert [line.split(": ")[-1] for line in capsys.readouterr().err.splitlines()] == ["heard"]
