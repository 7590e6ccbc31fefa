"""Pictures of what `sluice bench relay` measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bench.plot import BAD, FLOOR, MOST_SHOWN, OURS, dress, legend, new_figure
from bench.relay.figures import BUCKET_BEGINS, Histogram, RelayFigures
from bench.relay.knee import MAX_LOSS, MAX_P99_MS, Knee

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLORS = (OURS, "#d1731f")
"""Ours, and the other server's."""
USER, SYSTEM = "#8fb8f6", "#1f4e9c"
BIN_GROWTH = 1.1


def plot_run(servers: Sequence[RelayFigures]) -> Figure:
    """Delays as a histogram, and where the CPU went."""
    figure = new_figure()
    delays, cpu = figure.subplots(1, 2, width_ratios=(2, 1))
    ours = servers[0]
    figure.suptitle(
        f"{ours.workload}: {ours.subscribers:,} subscribers, {ours.packets_out_per_s / 1000:,.0f} k packets/s, "
        f"{ours.profile}"
    )
    for color, one in zip(COLORS, servers, strict=False):
        _delays(delays, one, color)
    dress(delays, "forwarding delay [ms]", "share of packets [%]")
    delays.set_xscale("log", subs=(2, 5))
    delays.set_ylim(bottom=0)
    for formatter in (delays.xaxis.set_major_formatter, delays.xaxis.set_minor_formatter):
        formatter("{x:g}")
    delays.axvline(MAX_P99_MS, color=BAD, linewidth=1, linestyle=":")
    delays.annotate(
        f"{MAX_P99_MS:g} ms", (MAX_P99_MS, 1), xycoords=("data", "axes fraction"), xytext=(4, -12),
        textcoords="offset points", color=BAD, fontsize=8,
    )  # fmt: skip
    legend(delays)
    _cpu(cpu, servers)
    return figure


def plot_knees(workload: str, unit: str, knees: Sequence[tuple[str, Knee]]) -> Figure:
    """Delay, loss and CPU over size, the knee marked."""
    figure = new_figure(high=7.2)
    figure.suptitle(f"{workload}: how many {unit} one core holds")
    delay, lost, cpu = figure.subplots(3, 1, sharex=True, height_ratios=(2, 1, 1))
    largest = max(step.size for _, knee in knees for step in knee.steps)
    for color, (server, knee) in zip(COLORS, knees, strict=False):
        sizes = [step.size for step in knee.steps]
        runs = [step.figures for step in knee.steps]
        style: dict[str, Any] = {"color": color, "marker": "o", "markersize": 4, "linewidth": 1.5}
        thin: dict[str, Any] = {"color": color, "linewidth": 1, "linestyle": "--"}
        delay.plot(sizes, [run.delay_ms_p99 for run in runs], label=f"{server}, p99", **style)
        delay.plot(sizes, [run.delay_ms_p50 for run in runs], label="p50", **thin)
        lost.plot(sizes, [100 * run.loss for run in runs], **style)
        cpu.plot(sizes, [100 * run.server_core_share for run in runs], label=server, **style)
        cpu.plot(sizes, [100 * run.generator_core_share for run in runs], label="its generator", **thin)
        for axes in (delay, lost, cpu):
            axes.axvline(knee.size, color=color, linewidth=6, alpha=0.2)
        delay.annotate(
            f"{server} holds {knee.size:,}", (knee.size, 0), xycoords=("data", "axes fraction"),
            xytext=(8 if knee.size < largest / 2 else -8, 6), textcoords="offset points",
            ha="left" if knee.size < largest / 2 else "right", color=color, fontsize=9,
        )  # fmt: skip
    dress(delay, "", "forwarding delay [ms]")
    dress(lost, "", "loss [%]")
    dress(cpu, unit, "share of a core [%]")
    delay.axhline(MAX_P99_MS, color=BAD, linewidth=1, linestyle=":", label=f"objective: p99 under {MAX_P99_MS:g} ms")
    lost.axhline(100 * MAX_LOSS, color=BAD, linewidth=1, linestyle=":", label=f"objective: under {100 * MAX_LOSS:g} %")
    delay.set_ylim(0, min(delay.get_ylim()[1], MOST_SHOWN * MAX_P99_MS))
    lost.set_yscale("symlog", linthresh=0.1)
    lost.yaxis.set_major_formatter("{x:g}")
    cpu.set_ylim(0, 105)
    for axes in (delay, lost, cpu):
        legend(axes)
    return figure


def _delays(axes: Axes, figures: RelayFigures, color: str) -> None:
    if figures.delays:
        shares, edges = rebinned(figures.delays)
        axes.stairs([100 * share for share in shares], edges, fill=True, alpha=0.35, color=color)
    axes.axvline(
        figures.delay_ms_p99,
        color=color,
        linewidth=1.5,
        label=f"{figures.server}: p50 {figures.delay_ms_p50:.2f} ms, p99 {figures.delay_ms_p99:.2f} ms",
    )


def rebinned(counts: Histogram) -> tuple[list[float], list[float]]:
    """Shares, and the edges [ms] of bins that are the same for every histogram: each a tenth wider than the last."""
    whole = sum(count for _, count in counts)
    first = math.floor(math.log(counts[0][0] * BUCKET_BEGINS, BIN_GROWTH))
    last = math.ceil(math.log(counts[-1][0], BIN_GROWTH))
    shares, below = [0.0] * (last - first), 0.0
    for bound, count in counts:
        begin = max(below, bound * BUCKET_BEGINS)
        for place in range(len(shares)):
            left, right = BIN_GROWTH ** (first + place), BIN_GROWTH ** (first + place + 1)
            shares[place] += count / whole * max(0.0, min(right, bound) - max(left, begin)) / (bound - begin)
        below = bound
    return shares, [BIN_GROWTH ** (first + place) / 1000 for place in range(len(shares) + 1)]


def _cpu(axes: Axes, servers: Sequence[RelayFigures]) -> None:
    """Stacked bars, with the kernel's own price as a line."""
    names = [one.server for one in servers]
    system = [one.cpu_us_sys for one in servers]
    axes.bar(names, system, color=SYSTEM, width=0.5, label="system")
    axes.bar(names, [one.cpu_us_user for one in servers], bottom=system, color=USER, width=0.5, label="user")
    for place, one in enumerate(servers):
        axes.annotate(
            f"{one.cpu_us_per_packet:.2f}", (place, one.cpu_us_per_packet), xytext=(0, 3), textcoords="offset points",
            ha="center", fontsize=9,
        )  # fmt: skip
    if (floor := servers[0].floor_us_per_packet) is not None:
        axes.axhline(floor, color=FLOOR, linewidth=1.2, linestyle="--", label=f"kernel alone: {floor:.2f}")
    dress(axes, "", "CPU per forwarded packet [us]")
    axes.margins(x=0.4, y=0.15)
    legend(axes)
