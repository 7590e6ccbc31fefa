"""A picture of a scale rehearsal: the load and its parts over time, the nodes, and what happened when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bench.plot import GRID, dress, legend, new_figure
from control.core.scaling_settings import ScalingSettings
from rehearse.core.scale.rehearsal import ScaleReport
from rehearse.core.scale.timeline import Event

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MEAN, STREAMS, CPU, EGRESS = "#1f2328", "#1f6feb", "#c0392b", "#2da44e"
CAPACITY, WARMING, DRAINING = "#8fb8f6", "#d8e6fb", "#f2c48d"
WIDE, HIGH = 11.0, 6.0
MARKED = {
    "launch": "launch",
    "first-packet": "first packet",
    "capacity": "capacity",
    "first-room": "first room",
    "cordon": "cordon",
    "moved": "move",
    "terminate": "end",
}
"""Events that the picture marks."""
NEAR_S = 2.5
"""Marks that are nearer to each other get labels at different heights."""


def plot_scale(report: ScaleReport) -> Figure:
    """The picture. Needs matplotlib, no display."""
    figure = new_figure(wide=WIDE, high=HIGH)
    events, load, nodes = figure.subplots(3, 1, sharex=True, height_ratios=(0.7, 3, 1.2))
    figure.suptitle(
        f"{report.nodes} SFUs and one more, {report.bots} bots, a tick is {report.tick_s:g} s: "
        + ("scaled out and in, no player was cut" if report.passed else report.broken[0])
    )
    _events(events, report)
    _load(load, report)
    _nodes(nodes, report)
    for axes in (load, nodes):
        for event in _marked(report):
            axes.axvline(event.at_s, color=GRID, linewidth=1, zorder=0)
    return figure


def _marked(report: ScaleReport) -> list[Event]:
    return [event for event in report.timeline.events if event.what in MARKED]


def _events(axes: Axes, report: ScaleReport) -> None:
    """The marks' names, one height lower for each that has a neighbour just before it."""
    axes.axis("off")
    axes.set_ylim(0, 4)
    last, row = -NEAR_S, 0
    for event in _marked(report):
        row = (row + 1) % 4 if event.at_s - last < NEAR_S else 0
        last = event.at_s
        axes.plot([event.at_s, event.at_s], [0, 3.4 - row], color=GRID, linewidth=1, zorder=0)
        axes.annotate(MARKED[event.what], (event.at_s, 3.4 - row), fontsize=8, va="center", ha="left")


def _load(axes: Axes, report: ScaleReport) -> None:
    rows = report.timeline.ticks
    at = [row.at_s for row in rows]
    style: dict[str, Any] = {"marker": "o", "markersize": 2.5}
    axes.plot(at, _known([row.streams for row in rows]), color=STREAMS, linewidth=1.5, label="streams", **style)
    axes.plot(at, _known([row.cpu for row in rows]), color=CPU, linewidth=1.5, label="CPU", **style)
    axes.plot(at, _known([row.egress for row in rows]), color=EGRESS, linewidth=1.5, label="egress", **style)
    axes.plot(at, _known([row.mean for row in rows]), color=MEAN, linewidth=1, linestyle="--", label="mean load")
    out_at, in_at = ScalingSettings().scale_out_at, ScalingSettings().scale_in_at
    axes.axhline(out_at, color=MEAN, linewidth=1, linestyle=":")
    axes.axhline(in_at, color=MEAN, linewidth=1, linestyle=":")
    for height, words in ((out_at, "hot from here"), (in_at, "quiet up to here")):
        axes.annotate(words, (1, height), xycoords=("axes fraction", "data"), fontsize=8, ha="right", va="bottom")
    axes.set_ylim(0, 1.05)
    dress(axes, "", "share of a full node")
    legend(axes)


def _nodes(axes: Axes, report: ScaleReport) -> None:
    rows = report.timeline.ticks
    at = [row.at_s for row in rows]
    capacity = [row.capacity for row in rows]
    coming = [row.warming + row.unknown for row in rows]
    going = [row.draining for row in rows]
    axes.stackplot(
        at, capacity, coming, going, step="post", colors=(CAPACITY, WARMING, DRAINING),
        labels=("capacity", "coming up", "draining"),
    )  # fmt: skip
    axes.set_ylim(0, report.nodes + 2.4)
    axes.set_yticks(range(report.nodes + 2))
    dress(axes, "seconds", "nodes")
    legend(axes)


def _known(values: list[float | None]) -> list[float]:
    """Unknown values leave a hole in the line."""
    return [float("nan") if value is None else value for value in values]
