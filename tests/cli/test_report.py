"""A rehearsal's verdict says what was kept, and no more."""

from __future__ import annotations

from rich.console import Console

from cli.report import report_table
from rehearse.core.rehearsal import Ending, LongestGaps, RehearsalKind, RehearsalReport, Scale, summarize
from shared.records import DrainReport


def report(kind: RehearsalKind, *, audio_ms: float) -> RehearsalReport:
    ending = Ending("sfu-1", frozenset({"bot-1"}), 10.0, ended=12.0, exit_code=0, report=DrainReport(sfu="sfu-1"))
    ending.on_told("bot-1", at=10.1)
    if kind is RehearsalKind.EXIT:
        ending.ordered = 11.0
        ending.on_rejoined("bot-1", at=12.5)
    else:
        ending.on_moved("bot-1", at=11.0)
    gaps = LongestGaps(audio_ms=audio_ms, video_ms=30.0)
    return summarize(kind, [ending], gaps=gaps, failures=[], scale=Scale(bots=2, rooms=1, sfus=2, routers=1, seed=1))


def told(report: RehearsalReport) -> str:
    console = Console(width=80, record=True, highlight=False)
    console.print(report_table(report))
    return console.export_text()


def test_no_player_was_cut_is_said_only_where_gaps_have_a_bound() -> None:
    drain = report(RehearsalKind.DRAIN, audio_ms=22.0)
    assert drain.passed
    assert "no player was cut, and no gap was beyond its bound" in told(drain)


def test_a_forced_exit_says_what_it_kept_besides_the_gap_it_made() -> None:
    forced = report(RehearsalKind.EXIT, audio_ms=1100.0)
    assert forced.passed
    words = told(forced)
    assert "1100 ms" in words
    assert "no player was cut" not in words
    assert "every player was told and came back elsewhere within 1.50 s" in words


def test_a_gap_of_a_second_is_a_cut_in_a_drain() -> None:
    drain = report(RehearsalKind.DRAIN, audio_ms=1100.0)
    assert not drain.passed
    assert "no player was cut" not in told(drain)
