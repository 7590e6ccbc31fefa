"""Whether a player was cut, from facts."""

from __future__ import annotations

import msgspec
import pytest
from rich.console import Console

from cli.report import report_table
from rehearse.core.ending import Ending, Failure
from rehearse.core.gaps import LongestGaps
from rehearse.core.rehearsal import RehearsalKind, RehearsalReport, Scale, advice, counted, summarize, verdict
from shared.records import DrainReport

GOOD = LongestGaps(audio_ms=40.0, video_ms=66.7)
SCALE = Scale(bots=4, rooms=1, sfus=2, routers=2, seed=1)


def ending(*players: str) -> Ending:
    """An SFU that drained well: told at 10.1 s, moved at 11 s, gone at 12 s."""
    made = Ending(sfu="sfu-1", on_it=frozenset(players), began=10.0, ended=12.0, exit_code=0)
    made.report = DrainReport(sfu="sfu-1", outcome="empty", producers_at_exit=0, consumers_at_exit=0)
    for player in players:
        made.on_told(player, at=10.1)
        made.on_moved(player, at=11.0)
    return made


def test_everybody_moved_within_the_bounds_passes() -> None:
    report = summarize(RehearsalKind.DRAIN, [ending("a", "b")], gaps=GOOD, failures=[], scale=SCALE)
    assert report.passed
    assert report.players_moved == 2
    assert report.players_stayed == 0
    assert report.cordon_to_last_told_ms == pytest.approx(100)
    assert report.cordon_to_last_move_s == pytest.approx(1.0)
    assert report.cordon_to_exit_s == pytest.approx(2.0)


def test_the_keys_that_scripts_rely_on_are_there() -> None:
    report = summarize(RehearsalKind.DRAIN, [ending("a")], gaps=GOOD, failures=[], scale=SCALE)
    assert {
        "players_moved",
        "players_stayed",
        "players_evicted",
        "failed_connections",
        "audio_gap_ms_max",
        "video_gap_ms_max",
        "cordon_to_last_told_ms",
        "cordon_to_last_move_s",
        "cordon_to_exit_s",
        "sfu_exit_codes",
        "producers_at_exit",
        "consumers_at_exit",
    } <= set(msgspec.json.decode(msgspec.json.encode(report)))
    assert msgspec.json.decode(msgspec.json.encode(report), type=RehearsalReport) == report


@pytest.mark.parametrize(
    ("gaps", "stall_ms", "told"),
    [
        (LongestGaps(audio_ms=64.0, video_ms=40.0), 63.0, True),
        (LongestGaps(audio_ms=40.0, video_ms=90.0), 20.0, True),
        (LongestGaps(audio_ms=64.0, video_ms=40.0), 3.0, False),
        (LongestGaps(audio_ms=64.0, video_ms=40.0), None, False),
        (GOOD, 63.0, False),
    ],
)
def test_gaps_on_a_busy_machine_come_with_advice(gaps: LongestGaps, stall_ms: float | None, told: bool) -> None:
    report = summarize(RehearsalKind.DRAIN, [ending("a")], gaps=gaps, failures=[], scale=SCALE, stall_ms=stall_ms)
    console = Console(width=200, record=True)
    console.print(report_table(report))
    shown = f"it kept an idle process waiting for {stall_ms:.0f} ms" if stall_ms else "an idle process"
    assert (shown in console.export_text()) is told


def test_what_is_no_gap_is_not_laid_on_the_machine() -> None:
    cut = ending("a")
    cut.exit_code = 1
    report = summarize(RehearsalKind.DRAIN, [cut], gaps=GOOD, failures=[], scale=SCALE, stall_ms=63.0)
    assert not report.passed
    assert advice(report) == ""


def test_a_told_time_is_the_first_one() -> None:
    made = ending("a")
    made.on_told("a", at=19.0)
    assert made.told["a"] == 10.1


@pytest.mark.parametrize(
    ("gaps", "word"),
    [
        (LongestGaps(audio_ms=40.1, video_ms=30.0), "audio"),
        (LongestGaps(audio_ms=20.0, video_ms=67.0), "video"),
        (LongestGaps(audio_ms=None, video_ms=30.0), "no receiver"),
    ],
)
def test_a_gap_beyond_the_bounds_is_a_cut(gaps: LongestGaps, word: str) -> None:
    cut = verdict(RehearsalKind.DRAIN, [ending("a")], gaps=gaps, failures=[])
    assert [sentence for sentence in cut if word in sentence]


def test_a_failed_connection_is_a_cut() -> None:
    assert verdict(RehearsalKind.ROLL, [ending("a")], gaps=GOOD, failures=[Failure("a", "b", "x")])


def test_a_visit_to_an_sfu_that_was_ended_by_force_is_no_failure_of_its_own() -> None:
    failures = [Failure("a", "sfu-1", "unreachable"), Failure("a", "sfu-2", "unreachable")]
    assert counted(RehearsalKind.EXIT, [ending("a")], failures) == failures[1:]
    assert counted(RehearsalKind.ROLL, [ending("a")], failures) == failures


def test_an_eviction_is_a_cut_in_a_drain_but_what_a_forced_exit_is_for() -> None:
    made = ending()
    made.on_it = frozenset({"a"})
    made.on_told("a", at=10.1)
    made.on_rejoined("a", at=13.0)
    made.ordered = 12.0
    made.report = DrainReport(sfu="sfu-1", outcome="forced", evicted=1, producers_at_exit=2)
    assert verdict(RehearsalKind.DRAIN, [made], gaps=GOOD, failures=[])
    assert verdict(RehearsalKind.EXIT, [made], gaps=LongestGaps(audio_ms=900.0, video_ms=900.0), failures=[]) == []
    report = summarize(RehearsalKind.EXIT, [made], gaps=GOOD, failures=[], scale=SCALE)
    assert (report.players_stayed, report.players_evicted, report.players_rejoined) == (1, 1, 1)
    assert report.exit_order_to_last_rejoin_s == pytest.approx(1.0)
    assert report.producers_at_exit == 2


def test_a_forced_exit_must_be_rejoined_soon_and_by_everybody() -> None:
    made = ending()
    made.on_it = frozenset({"a", "b"})
    made.ordered = 12.0
    made.told = {"a": 10.1, "b": 10.1}
    made.on_rejoined("a", at=17.5)
    cut = " / ".join(verdict(RehearsalKind.EXIT, [made], gaps=GOOD, failures=[]))
    assert "b did not come back" in cut
    assert "a took more than 5 s" in cut


@pytest.mark.parametrize(("code", "word"), [(None, "did not end"), (1, "status 1"), (-9, "status -9")])
def test_an_sfu_must_end_with_status_0(code: int | None, word: str) -> None:
    made = ending("a")
    made.exit_code = code
    assert any(word in sentence for sentence in verdict(RehearsalKind.DRAIN, [made], gaps=GOOD, failures=[]))


def test_a_player_that_was_never_told_or_a_missing_report_is_a_cut() -> None:
    made = ending("a")
    made.told.clear()
    made.report = None
    cut = " / ".join(verdict(RehearsalKind.DRAIN, [made], gaps=GOOD, failures=[]))
    assert "never heard" in cut
    assert "no drain report" in cut


def test_a_rehearsal_in_which_nothing_ended_does_not_pass() -> None:
    assert verdict(RehearsalKind.ROLL, [], gaps=GOOD, failures=[]) == ["no SFU ended"]


def test_an_sfu_that_never_ended_has_no_time_to_exit() -> None:
    made = ending("a")
    made.ended = made.exit_code = None
    report = summarize(RehearsalKind.DRAIN, [made], gaps=GOOD, failures=[], scale=SCALE)
    assert report.cordon_to_exit_s is None
    assert not report.passed


def test_a_player_that_a_roll_moved_three_times_and_a_roll_that_paused_are_told() -> None:
    def told(moves: int, *troubles: str) -> list[str]:
        report = summarize(
            RehearsalKind.ROLL, [ending("a")], gaps=GOOD, failures=[], scale=SCALE, moves=moves, roll=troubles
        )
        assert report.moves_per_player_max == moves
        return report.cut

    assert told(2) == []
    assert told(3) == ["a player moved 3 times; bound 2"]
    assert told(1, "the roll paused: x") == ["the roll paused: x"]
