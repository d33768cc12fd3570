"""The service at one moment, as a row of the live table. Pure."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """What the cluster says now. Demand in replica-equivalents; None: not known (a metric is missing)."""

    time: float  # unix seconds
    demand: float | None = None
    forecast_upper: float | None = None
    reactive: float | None = None
    predictive: float | None = None
    without_forecast: float | None = None
    wanted: int | None = None
    starting: int = 0
    warm: int = 0
    binding: str = ""
    in_flight: float | None = None
    ttft_p95_seconds: float | None = None
    sent: int = 0
    failed: int = 0


COLUMNS: Final = (
    ("time", 8),
    ("jump", 7),
    ("demand", 6),
    ("forecast", 8),
    ("react.", 6),
    ("pred.", 5),
    ("wanted", 6),
    ("starting", 8),
    ("warm", 4),
    ("bound by", 10),
    ("in flight", 9),
    ("p95 TTFT", 8),
    ("sent", 5),
    ("failed", 6),
)


def heading() -> str:
    """Return the table's heading."""
    return "  ".join(name.rjust(width) for name, width in COLUMNS)


def row(snapshot: Snapshot, *, jump_at: float) -> str:
    """Return one row; `jump` counts seconds to (negative) or since the jump."""
    cells = (
        f"{datetime.fromtimestamp(snapshot.time):%H:%M:%S}",  # noqa: DTZ006 - the reader's own clock
        f"{snapshot.time - jump_at:+.0f} s",
        _decimal(snapshot.demand),
        _decimal(snapshot.forecast_upper),
        _whole(snapshot.reactive),
        _whole(snapshot.predictive),
        _whole(snapshot.wanted),
        str(snapshot.starting),
        str(snapshot.warm),
        snapshot.binding or "-",
        _whole(snapshot.in_flight),
        "-" if snapshot.ttft_p95_seconds is None else f"{snapshot.ttft_p95_seconds * 1000:.0f} ms",
        str(snapshot.sent),
        str(snapshot.failed),
    )
    return "  ".join(cell.rjust(width) for cell, (_, width) in zip(cells, COLUMNS, strict=True))


def _decimal(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _whole(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f}"
