"""Kinds of arguments, each refused with what it should be."""

import argparse
import math
from pathlib import Path


def positive(text: str) -> float:
    """A finite number above 0."""
    value = _number(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not above 0; give a positive number")
    return value


def not_negative(text: str) -> float:
    """A finite number from 0 on."""
    value = _number(text)
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is negative or not finite; give 0 or more")
    return value


def percent(text: str) -> float:
    """A share between 0 and 100 %, both excluded."""
    value = _number(text)
    if not 0 < value < 100:  # noqa: PLR2004 - per cent
        raise argparse.ArgumentTypeError(f"{text!r} is no share of requests; give per cent between 0 and 100, such as 99")
    return value


def count(text: str) -> int:
    """A whole number from 1 on."""
    if not text.strip().isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def counts(text: str) -> list[int]:
    """Whole numbers above 0, separated by commas; sorted, each once."""
    return sorted({count(part) for part in text.split(",")})


def picture(text: str) -> Path:
    """A file to draw into, in a folder that is there: better said before the minutes of work than after."""
    path = Path(text)
    if path.suffix not in {".png", ".svg", ".pdf"}:
        raise argparse.ArgumentTypeError(f"{text!r}: the name must end in .png, .svg or .pdf")
    if not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"{text!r}: there is no folder {str(path.parent)!r}")
    return path


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
