"""The run as a picture."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from e2e.demo.snapshot import Snapshot

mpl.use("Agg")


def draw(snapshots: Sequence[Snapshot], *, jump_at: float, target_utilization: float, target: Path) -> Path:
    """Write a PNG: demand and forecast as the replicas that they need, replicas wanted and warm, time to first token.

    Demand is divided by the planned utilisation, so that all curves of the upper half share one unit.
    """
    figure = Figure(figsize=(11, 7), layout="constrained")
    replicas, latency = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    minutes = [(snapshot.time - jump_at) / 60 for snapshot in snapshots]
    _draw_replicas(replicas, minutes, snapshots, target_utilization)
    _draw_latency(latency, minutes, snapshots)
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, dpi=120)
    return target


def _draw_replicas(axes: Axes, minutes: Sequence[float], snapshots: Sequence[Snapshot], utilization: float) -> None:
    demand = [_number(snapshot.demand) / utilization for snapshot in snapshots]
    upper = [_number(snapshot.forecast_upper) / utilization for snapshot in snapshots]
    axes.plot(minutes, demand, color="tab:red", label="demand (replicas it needs)")
    axes.plot(minutes, upper, color="tab:orange", linestyle="--", label="forecast, upper")
    axes.step(minutes, [_number(snapshot.wanted) for snapshot in snapshots], where="post", color="tab:blue", label="wanted")
    axes.step(minutes, [snapshot.warm for snapshot in snapshots], where="post", color="tab:green", linewidth=2.5, label="warm")
    without = [_number(snapshot.without_forecast) for snapshot in snapshots]
    axes.step(minutes, without, where="post", color="gray", linestyle=":", label="wanted without the forecast")
    _mark_jump(axes)
    axes.set_ylabel("replicas")
    axes.set_ylim(bottom=0)
    axes.legend(loc="upper left")


def _draw_latency(axes: Axes, minutes: Sequence[float], snapshots: Sequence[Snapshot]) -> None:
    axes.plot(minutes, [_number(snapshot.ttft_p95_seconds) * 1000 for snapshot in snapshots], color="tab:purple")
    _mark_jump(axes)
    axes.set_ylabel("p95 TTFT, ms")
    axes.set_xlabel("minutes since the jump")
    axes.set_ylim(bottom=0)


def _mark_jump(axes: Axes) -> None:
    axes.axvline(0.0, color="black", linewidth=0.8)
    axes.grid(visible=True, alpha=0.3)


def _number(value: float | None) -> float:
    return float("nan") if value is None else float(value)
