"""A chaos run's report for people."""

from __future__ import annotations

from collections import Counter

from rich.console import Group, RenderableType
from rich.table import Table

from cli.output import plain
from rehearse.core.chaos.report import ChaosReport


def chaos_report(report: ChaosReport) -> RenderableType:
    """The figures, and each violation with how to see it again."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    kinds = Counter(event.kind for event in report.events)
    recovered = "–" if report.recovered_s_max is None else f"{report.recovered_s_max:.1f} s"
    rows = [
        ("rounds, events", f"{report.rounds}, {len(report.events)} in {report.minutes:.1f} minutes"),
        ("kinds", ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()))),
        (
            "longest audio gap of untouched bots",
            f"{report.audio_gap_ms_max_unaffected:.0f} ms  (bound {report.audio_gap_ms_bound:.0f} ms)",
        ),
        ("longest time until all heard everybody", recovered),
        ("longest stall of this machine", f"{report.machine_stall_ms_max:.0f} ms"),
    ]
    for name, value in rows:
        table.add_row(name, value)
    who = f"chaos, seed {report.seed}: {report.bots} bots in {report.rooms} rooms, {report.sfus} SFUs"
    head = f"[bold]{who}, {report.routers} routers[/bold], {report.redis_server}"
    if report.passed:
        until = " until it was interrupted" if report.interrupted else ""
        return Group(head, table, f"[bold green]no principle was broken{until}[/bold green]")
    lines: list[RenderableType] = [f"[bold red]{len(report.violations)} violations[/bold red]"]
    for found in report.violations:
        lines += [
            plain(f"{found.principle}: {found.sentence}"),
            plain(f"  round {found.round}: {', '.join(found.events)}"),
            plain(f"  log {found.log}; again: {found.again}"),
        ]
    return Group(head, table, *lines)
