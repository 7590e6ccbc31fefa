"""A rehearsal's report for people."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table

from rehearse.core.rehearsal import RehearsalReport, advice


def report_table(report: RehearsalReport) -> RenderableType:
    """The figures with their bounds, and the verdict."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    rows: list[tuple[str, str]] = [
        ("players moved", str(report.players_moved)),
        ("most moves of one player", str(report.moves_per_player_max)),
        ("players stayed", str(report.players_stayed)),
        ("players evicted", str(report.players_evicted)),
        ("players rejoined", str(report.players_rejoined)),
        ("failed connections", str(report.failed_connections)),
        ("longest audio gap", _ms(report.audio_gap_ms_max, report.audio_gap_ms_bound)),
        ("longest video gap", _ms(report.video_gap_ms_max, report.video_gap_ms_bound)),
        ("longest stall of this machine", _ms(report.machine_stall_ms_max)),
        ("cordon to last told", _ms(report.cordon_to_last_told_ms)),
        ("cordon to last move", _s(report.cordon_to_last_move_s)),
        ("cordon to exit", _s(report.cordon_to_exit_s)),
        ("exit order to last rejoin", _s(report.exit_order_to_last_rejoin_s)),
        ("exit statuses", " ".join(str(code) for code in report.sfu_exit_codes)),
        ("producers, consumers at exit", f"{report.producers_at_exit}, {report.consumers_at_exit}"),
    ]
    for name, value in rows:
        table.add_row(name, value)
    who = f"{report.kind}: {report.bots} bots in {report.rooms} rooms, {report.sfus} SFUs, {report.routers} routers"
    verdict = (
        ["[bold green]no player was cut[/bold green]"] if report.passed else ["[bold red]cut[/bold red]", *report.cut]
    )
    if hint := advice(report):
        verdict.append(f"[dim]{hint}[/dim]")
    return Group(f"[bold]{who}[/bold], {report.redis_server}", table, *verdict)


def _ms(value: float | None, bound: float | None = None) -> str:
    if value is None:
        return "–"
    return f"{value:.0f} ms" + (f"  (bound {bound:.0f} ms)" if bound is not None else "")


def _s(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f} s"
