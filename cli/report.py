"""A rehearsal's report for people."""

from __future__ import annotations

from rich.console import Group, RenderableType

from cli.tables import known, pairs
from rehearse.core.rehearsal import RehearsalReport, advice


def report_table(report: RehearsalReport) -> RenderableType:
    """The figures with their bounds, and the verdict."""
    table = pairs(
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
        ("cordon to last move", known(report.cordon_to_last_move_s, "{:.2f} s")),
        ("cordon to exit", known(report.cordon_to_exit_s, "{:.2f} s")),
        ("exit order to last rejoin", known(report.exit_order_to_last_rejoin_s, "{:.2f} s")),
        ("exit statuses", " ".join(str(code) for code in report.sfu_exit_codes)),
        ("producers, consumers at exit", f"{report.producers_at_exit}, {report.consumers_at_exit}"),
    )
    who = f"{report.kind}: {report.bots} bots in {report.rooms} rooms, {report.sfus} SFUs, {report.routers} routers"
    verdict = (
        [f"[bold green]{_kept(report)}[/bold green]"] if report.passed else ["[bold red]cut[/bold red]", *report.cut]
    )
    if hint := advice(report):
        verdict.append(f"[dim]{hint}[/dim]")
    return Group(f"[bold]{who}[/bold], {report.redis_server}", table, *verdict)


def _kept(report: RehearsalReport) -> str:
    """What was kept. A forced exit silences players for as long as they take to rejoin: "no player was cut" would be
    untrue of it."""
    if report.audio_gap_ms_bound is None:
        back = known(report.exit_order_to_last_rejoin_s, "{:.2f} s")
        return f"every player was told and came back elsewhere within {back}"
    return "no player was cut, and no gap was beyond its bound"


def _ms(value: float | None, bound: float | None = None) -> str:
    return known(value, "{:.0f} ms" + (f"  (bound {bound:.0f} ms)" if bound is not None else ""))
