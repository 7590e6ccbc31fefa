"""What `sluice bench relay` prints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from bench.relay.figures import RelayFigures
from bench.relay.knee import Knee, KneeStep, LimitedBy

LIMITS = {
    LimitedBy.GENERATOR: "the generator's core is full: the server may hold more",
    LimitedBy.OTHERS: "other programs took a good part of the cores: try again when they are quiet",
    LimitedBy.SERVER_CPU: "the server's core is full",
    LimitedBy.BURST: "there is CPU left, but a burst to everybody takes too long",
}
_Row = tuple[str, Callable[[RelayFigures], str | None]]


def _maybe(value: float | None, unit: str, digits: int = 2) -> str | None:
    return None if value is None else f"{value:,.{digits}f} {unit}"


_ROWS: tuple[_Row, ...] = (
    ("packets in", lambda f: f"{f.packets_in_per_s:,.0f} /s"),
    ("packets out", lambda f: f"{f.packets_out_per_s:,.0f} /s"),
    ("loss", lambda f: f"{f.loss:.4%}"),
    ("CPU per forwarded packet", lambda f: f"{f.cpu_us_per_packet:.2f} us"),
    ("  of it user", lambda f: f"{f.cpu_us_user:.2f} us"),
    ("  of it system", lambda f: f"{f.cpu_us_sys:.2f} us"),
    ("the kernel alone, same sends", lambda f: _maybe(f.floor_us_per_packet, "us")),
    ("packets per send", lambda f: _maybe(f.packets_per_send, "", 2)),
    ("forwarding delay p50", lambda f: f"{f.delay_ms_p50:.2f} ms"),
    ("forwarding delay p99", lambda f: f"{f.delay_ms_p99:.2f} ms"),
    ("arrival, from outside, p50", lambda f: f"{f.arrival_ms_p50:.2f} ms"),
    ("arrival, from outside, p99", lambda f: f"{f.arrival_ms_p99:.2f} ms"),
    ("memory per subscriber", lambda f: f"{f.rss_kib_per_subscriber:.0f} KiB"),
    ("joined meanwhile", lambda f: None if f.joins is None else f"{f.joins:,} ({f.joins_per_s:.0f} /s)"),
    ("memory before and after", lambda f: _memory(f)),
    ("server's share of its core", lambda f: f"{f.server_core_share:.0%}"),
    ("generator's share of its core", lambda f: f"{f.generator_core_share:.0%}"),
    ("other programs, of one core", lambda f: f"{f.others_core_share:.0%}"),
    ("lost by the generator", lambda f: f"{f.generator_drops:,}" if f.generator_drops else None),
    ("frames sent late", lambda f: f"{f.late_frames:.3%}"),
    ("packets checked", lambda f: f"{f.verified:,}"),
    ("dropped by the server", lambda f: ", ".join(f"{count:,} {kind}" for kind, count in f.drops.items()) or None),
)


def _memory(figures: RelayFigures) -> str | None:
    if figures.rss_kib_warm is None or figures.rss_kib_end is None:
        return None
    return f"{figures.rss_kib_warm:,.0f} and {figures.rss_kib_end:,.0f} KiB"


def report_text(ours: RelayFigures, peer: RelayFigures | None) -> str:
    """A column for each server."""
    columns = [ours] if peer is None else [ours, peer]
    lines = [f"{ours.workload}, {ours.subscribers:,} subscribers, {ours.profile}, {ours.seconds:.1f} s"]
    if peer is not None:
        lines.append(f"{'':31}{ours.server:>20}{peer.server:>20}")
    for label, cell in _ROWS:
        cells = [cell(figures) for figures in columns]
        if any(one is not None for one in cells):
            lines.append(f"{label:31}" + "".join(f"{(one or '–').strip():>20}" for one in cells))
    if peer is not None:
        if peer.version:
            lines.append(f"{peer.server} is {peer.version}")
        lines.append(f"{peer.server} takes {ratio(ours, peer):.1f} x the CPU per forwarded packet")
    return "\n".join(lines)


def ratio(ours: RelayFigures, peer: RelayFigures) -> float:
    """How many times dearer the other is per packet."""
    return peer.cpu_us_per_packet / max(1e-9, ours.cpu_us_per_packet)


def step_text(step: KneeStep) -> str:
    """A line of progress."""
    figures = step.figures
    verdict = "good" if step.broken is None else " and ".join(step.broken.objectives)
    return (
        f"{step.size}: loss {figures.loss:.3%}, p99 {figures.delay_ms_p99:.2f} ms, {figures.cpu_us_per_packet:.2f} us "
        f"a packet, core {figures.server_core_share:.0%}, generator {figures.generator_core_share:.0%}: {verdict}"
    )


def knee_text(server: str, unit: str, knee: Knee) -> str:
    """The table of the steps and a sentence."""
    lines = [f"{unit:>12}{'packets/s':>12}{'loss':>10}{'p99':>10}{'CPU/packet':>12}{'server':>8}{'generator':>11}"]
    for step in knee.steps:
        figures = step.figures
        lines.append(
            f"{step.size:>12,}{figures.packets_out_per_s:>12,.0f}{figures.loss:>10.3%}{figures.delay_ms_p99:>7.2f} ms"
            f"{figures.cpu_us_per_packet:>9.2f} us{figures.server_core_share:>8.0%}"
            f"{figures.generator_core_share:>11.0%}"
            + ("" if step.broken is None else f"  {' and '.join(step.broken.objectives)} broken")
        )
    if knee.broken is None:
        lines.append(f"{server} held all that was tried, up to {knee.size:,} {unit}")
    else:
        first = knee.broken.objectives[0]
        lines.append(f"{server} holds {knee.size:,} {unit}; then {first} breaks: {LIMITS[knee.broken.limit]}")
    return "\n".join(lines)


def figures_json(figures: RelayFigures) -> dict[str, Any]:
    """Without the histogram."""
    told = asdict(figures)
    del told["delays"]
    return told


def report_json(ours: RelayFigures, peer: RelayFigures | None) -> dict[str, Any]:
    """Ours, the other server's under `peer`, and how many times dearer that is."""
    if peer is None:
        return figures_json(ours) | {"peer": None, "cpu_ratio": None}
    return figures_json(ours) | {"peer": figures_json(peer), "cpu_ratio": ratio(ours, peer)}


def knee_json(workload: str, knees: Sequence[tuple[str, Knee]]) -> dict[str, Any]:
    """The first knee is ours, the second one the other server's."""
    told = [
        {
            "workload": workload,
            "server": server,
            "knee": knee.size,
            "broke_first": knee.broken.objectives[0].value if knee.broken else None,
            "limit": knee.broken.limit.value if knee.broken else None,
            "steps": [
                {"size": step.size, "good": step.broken is None} | figures_json(step.figures) for step in knee.steps
            ],
        }
        for server, knee in knees
    ]
    return told[0] | {"peer": told[1] if len(told) > 1 else None}
