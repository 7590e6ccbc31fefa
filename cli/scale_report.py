"""A scale rehearsal's report for people: its timeline, the launch, the CPU column, and each promise."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from cli.tables import known, pairs
from rehearse.core.scale.rehearsal import ScaleReport
from rehearse.core.scale.timeline import Event, TickRow

BAR = 20
"""Characters of a load of 1.0."""
_STYLES = {"launch": "green", "capacity": "green", "cordon": "yellow", "terminate": "yellow", "skipped": "dim"}


def scale_report(report: ScaleReport) -> RenderableType:
    """All of it."""
    who = f"scale: {report.bots} bots, {report.nodes} SFUs and one more, {report.routers} routers"
    first = "" if report.passed else report.broken[0]
    verdict = (
        "[bold green]scaled out and in, and no player was cut[/bold green]"
        if report.passed
        else f"[bold red]not kept[/bold red] {escape(first)}\n[dim]logs are in {report.logs}[/dim]"
    )
    return Group(
        f"[bold]{who}[/bold], {report.redis_server}, a tick is {report.tick_s:g} s",
        "",
        _timeline(report),
        "",
        _figures(report),
        "",
        _promises(report),
        "",
        verdict,
    )


def _timeline(report: ScaleReport) -> RenderableType:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    for name in ("at", "mean load", "", "streams", "CPU", "nodes", "hot", "quiet", "what happened"):
        table.add_column(
            name, justify="right" if name in ("at", "streams", "CPU") else "left", no_wrap=name != "what happened"
        )
    rows: list[tuple[float, TickRow | Event]] = [(row.at_s, row) for row in _worth(report.timeline.ticks)]
    rows += [(event.at_s, event) for event in report.timeline.events]
    for at_s, row in sorted(rows, key=lambda each: each[0]):
        if isinstance(row, Event):
            table.add_row(f"{at_s:.1f} s", *[""] * 7, Text(row.words, style=_STYLES.get(row.what, "")))
        else:
            table.add_row(f"{at_s:.1f} s", *_tick(row))
    return table


def _worth(ticks: list[TickRow]) -> list[TickRow]:
    """The ticks worth showing: those that differ from the one before, and the last of each stretch."""
    after = [*ticks[1:], None]
    before = [None, *ticks[:-1]]
    return [row for row, a, b in zip(ticks, before, after, strict=True) if not (_alike(row, a) and _alike(row, b))]


def _alike(row: TickRow, other: TickRow | None) -> bool:
    """Only the time and small figures differ, and no streak grows."""
    if other is None:
        return False
    same = ("capacity", "warming", "unknown", "draining", "hits", "action")
    near = abs((row.mean or 0.0) - (other.mean or 0.0)) < 0.02
    return near and not row.action.startswith("scale") and all(getattr(row, k) == getattr(other, k) for k in same)


def _tick(row: TickRow) -> tuple[str, str, str, str, str, str, str, Text]:
    mean = "unknown" if row.mean is None else f"{row.mean:.2f}"
    others = {"+": row.warming, "?": row.unknown, "-": row.draining}
    nodes = str(row.capacity) + "".join(f" {sign}{count}" for sign, count in others.items() if count)
    done = "" if row.action in ("none", "") else f"{row.action}: {row.reason.replace('-', ' ')}"
    return (
        mean,
        "█" * round(BAR * min(1.2, row.mean or 0.0)),
        known(row.streams, "{:.2f}"),
        known(row.cpu, "{:.2f}"),
        nodes,
        f"{row.hits}" if row.hits else "",
        f"{row.quiet}" if row.quiet else "",
        Text(done, style="bold" if row.action.startswith("scale") else "dim"),
    )


def _figures(report: ScaleReport) -> RenderableType:
    stages = {
        "healthy": report.launch_to_healthy_s,
        "first packet": report.launch_to_first_packet_s,
        "capacity": report.launch_to_capacity_s,
        "first room": report.launch_to_first_room_s,
    }
    told = ", ".join(f"{name} {known(seconds, '{:.1f} s')}" for name, seconds in stages.items())
    bounds = f"(bound {report.audio_gap_ms_bound:.0f} ms)", f"(bound {report.video_gap_ms_bound:.0f} ms)"
    return pairs(
        ("from launch to", told),
        ("from cordon to end", known(report.cordon_to_terminate_s, "{:.1f} s")),
        (
            "at its end",
            f"{_whole(report.streams_at_terminate)} streams, {_whole(report.egress_bps_at_terminate)} bit/s",
        ),
        ("failed connections", str(report.failed_connections)),
        ("players moved, stayed, cut", f"{report.players_moved}, {report.players_stayed}, {report.players_evicted}"),
        ("longest audio gap", f"{_whole(report.audio_gap_ms_max)} ms  {bounds[0]}"),
        ("longest video gap", f"{_whole(report.video_gap_ms_max)} ms  {bounds[1]}"),
        ("longest stall of this machine", f"{_whole(report.machine_stall_ms_max)} ms"),
        ("CPU alone", _cpu(report)),
    )


def _cpu(report: ScaleReport) -> str:
    cpu, full = report.cpu_alone, report.all_parts
    peak = "unknown" if cpu.peak is None else f"{cpu.peak:.2f}"
    did = f"a {cpu.changed} at tick {cpu.changed_at_tick}" if cpu.changed else "nothing at all"
    other = f"a {full.changed} at tick {full.changed_at_tick}" if full.changed else "nothing either"
    return f"at most {peak} over {cpu.ticks} ticks: {did}; all parts by the same replay: {other}"


def _promises(report: ScaleReport) -> RenderableType:
    good, bad = Text("✓", style="green"), Text("✗", style="bold red")
    rows = ((bad if each.broken else good, Text("\n  ".join([each.promise, *each.broken]))) for each in report.promises)
    return pairs(*rows, gap=1)


def _whole(value: float | None) -> str:
    return known(value, "{:.0f}")
