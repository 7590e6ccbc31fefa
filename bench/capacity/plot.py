"""The picture of a search: delay, CPU and loss over streams, where it broke, and the ceiling made of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.capacity.figures import MAX_LOSS, MAX_P99_MS, EndReason
from bench.capacity.text import CapacityReport, reason_text
from bench.plot import BAD, FLOOR, MOST_SHOWN, OURS, dress, legend, new_figure
from shared.load import CPU_GUARD

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GOOD = "#2e8b57"
_BROKE = {EndReason.GENERATOR: "the generator's limit"}
"""What the broken size is called; otherwise it is where the SFU broke."""


def plot_finding(report: CapacityReport) -> Figure:
    """Three panels over the same streams."""
    figure = new_figure(high=7.6)
    figure.suptitle(f"{report.host.cpu}: {reason_text(report.finding)}", fontsize=10, wrap=True)
    delay, cpu, loss = figure.subplots(3, 1, sharex=True, height_ratios=(2, 1.4, 1))
    runs = [step.figures for step in report.finding.steps]
    streams = [run.streams for run in runs]
    marker = "o" if len(runs) < 40 else ""
    delay.plot(streams, [run.delay_ms_p99 for run in runs], color=OURS, marker=marker, markersize=4, label="p99")
    delay.plot(streams, [run.delay_ms_p50 for run in runs], color=OURS, linestyle="--", linewidth=1, label="p50")
    cpu.plot(streams, [100 * run.sfu_cpu for run in runs], color=OURS, marker=marker, markersize=4, label="SFU")
    cpu.plot(
        streams, [100 * run.generator_cpu for run in runs], color=FLOOR, linestyle="--", linewidth=1, label="generator"
    )
    cpu.plot(streams, [100 * run.others_cpu for run in runs], color=FLOOR, linestyle=":", linewidth=1, label="others")
    loss.plot(streams, [100 * run.loss for run in runs], color=OURS, marker=marker, markersize=4, label="loss")
    _bound(delay, MAX_P99_MS, f"{MAX_P99_MS:g} ms")
    _bound(cpu, 100 * CPU_GUARD, f"{CPU_GUARD:.0%}")
    _bound(loss, 100 * MAX_LOSS, f"{MAX_LOSS:.1%}")
    for axes in (delay, cpu, loss):
        _mark(axes, report, named=axes is delay)
    delay.set_ylim(0, min(delay.get_ylim()[1], MOST_SHOWN * MAX_P99_MS))
    cpu.set_ylim(0, 105)
    loss.set_yscale("symlog", linthresh=0.1)
    loss.set_ylim(0, max(loss.get_ylim()[1], 200 * MAX_LOSS))
    loss.yaxis.set_major_formatter("{x:g}")
    dress(delay, "", "forwarding delay [ms]")
    dress(cpu, "", "share of a core [%]")
    dress(loss, "forwarded streams", "loss [%]")
    for axes in (delay, cpu, loss):
        legend(axes)
    return figure


def _bound(axes: Axes, value: float, text: str) -> None:
    axes.axhline(value, color=BAD, linewidth=1, linestyle=":", label=f"bound: {text}")


def _mark(axes: Axes, report: CapacityReport, *, named: bool) -> None:
    """Where it broke, and the ceiling; in the legend when `named`."""
    finding = report.finding
    lines = [(finding.stream_ceiling, GOOD, "stream_ceiling")]
    if finding.broke is not None:
        lines.append((finding.broke.figures.streams, BAD, _BROKE.get(finding.reason, "broke")))
    for at, color, name in lines:
        axes.axvline(at, color=color, linewidth=6, alpha=0.25, label=f"{name} {at:,}" if named else None)
