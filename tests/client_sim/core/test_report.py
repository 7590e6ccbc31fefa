"""The bots' report: sums, worst values, and who was cut."""

from __future__ import annotations

import msgspec
import pytest

from client_sim.core.audience import Received
from client_sim.core.commands import JoinCommand, LeaveCommand, MarkCommand, PresenceCommand, StopCommand, read
from client_sim.core.gaps import GapReport
from client_sim.core.movelog import MoveLog
from client_sim.core.report import BotCounts, BotGaps, BotReport, fleet_report, gaps_of
from player.core.events import Relocated, StepTaken
from shared.errors import BadMessage


def bot(name: str, *, sfu: str = "a", counts: BotCounts | None = None, gaps: BotGaps | None = None) -> BotReport:
    return BotReport(
        bot=name,
        room="r",
        phase="settled",
        sfu=sfu,
        ended="",
        counts=counts or BotCounts(),
        gaps=gaps or BotGaps(),
        marked_audio_gap_ms=None,
        marked_video_gap_ms=None,
        moves=(),
    )


def fleet(*reports: BotReport) -> tuple[str, ...]:
    return fleet_report(reports, frame_ms=50.0, worst_send_lag_ms=1.0, took_s=2.0).cut


def test_gaps_are_the_worst_and_counts_are_summed() -> None:
    reports = [
        bot("x", counts=BotCounts(moves=1, packets_in=5), gaps=BotGaps(audio_gap_ms=30.0, audio_units=3, duplicates=1)),
        bot("y", counts=BotCounts(moves=2), gaps=BotGaps(audio_gap_ms=20.0, video_gap_ms=60.0, audio_units=4)),
        bot("z"),
    ]
    total = fleet_report(reports, frame_ms=50.0, worst_send_lag_ms=1.0, took_s=2.0)
    assert (total.counts.moves, total.counts.packets_in) == (3, 5)
    assert (total.gaps.audio_gap_ms, total.gaps.video_gap_ms, total.gaps.audio_units) == (30.0, 60.0, 7)
    assert total.cut == ()
    assert msgspec.json.decode(msgspec.json.encode(total))["gaps"]["audio_gap_ms"] == 30.0


def test_kinds_are_kept_apart() -> None:
    heard = [
        Received("p", "ann", "audio", True, GapReport(units=9, longest_gap_ms=40.0, missing=1, duplicates=2)),
        Received("q", "ann", "video", True, GapReport(units=5, longest_gap_ms=90.0, missing=2, damaged=1)),
    ]
    gaps = gaps_of(heard)
    assert (gaps.audio_gap_ms, gaps.video_gap_ms, gaps.audio_missing, gaps.video_missing) == (40.0, 90.0, 1, 2)
    assert (gaps.duplicates, gaps.damaged) == (2, 1)
    assert gaps_of([]).audio_gap_ms is None, "nothing received is not the same as no gap"


@pytest.mark.parametrize(
    "cut",
    [
        bot("x", counts=BotCounts(evictions=1)),
        bot("x", counts=BotCounts(failed_connections=1)),
        bot("x", sfu=""),
        bot("x", gaps=BotGaps(damaged=1)),
    ],
)
def test_each_way_of_being_cut_is_told(cut: BotReport) -> None:
    assert len(fleet(bot("ok"), cut)) == 1


def test_the_steps_of_a_move_are_timed_from_its_beginning() -> None:
    log = MoveLog()
    log.step(StepTaken(step="move-started", sfu="a", reason="cordoned"), now=10.0)
    log.step(StepTaken(step="new-link-up", sfu="b", reason=""), now=10.02)
    log.step(StepTaken(step="flowing", sfu="b", reason=""), now=10.1)
    log.step(StepTaken(step="switched", sfu="b", reason=""), now=10.2)
    log.step(StepTaken(step="move-started", sfu="b", reason="cordoned"), now=10.3)
    moved = log.moved(Relocated(sfu="b", left="a", took_ms=900.0, audio_gap_ms=20.0, video_gap_ms=None))
    assert (moved.left, moved.sfu, moved.reason) == ("a", "b", "cordoned")
    assert (moved.new_link_up_ms, moved.flowing_ms, moved.switched_ms, moved.took_ms) == (20.0, 100.0, 200.0, 900.0)
    assert log.done == [moved]


@pytest.mark.parametrize(
    ("line", "command"),
    [
        (b'{"cmd":"stop"}', StopCommand()),
        (b'{"cmd":"mark"}', MarkCommand()),
        (b'{"cmd":"join","room":"kitchen","bots":2}', JoinCommand(room="kitchen", bots=2)),
        (b'{"cmd":"leave","bot":"bot-1"}', LeaveCommand(bot="bot-1")),
        (b'{"cmd":"presence","bot":"bot-1","at_desk":false}', PresenceCommand(bot="bot-1", at_desk=False)),
    ],
)
def test_commands_are_read(line: bytes, command: object) -> None:
    assert read(line) == command


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"x",
        b"[]",
        b'{"cmd":"fly"}',
        b'{"cmd":"presence","desk":true}',
        b'{"cmd":"join","room":"x","bots":0}',
        b'{"cmd":"leave"}',
        b"\xff",
    ],
)
def test_a_line_that_is_no_command_is_a_bad_message(line: bytes) -> None:
    with pytest.raises(BadMessage):
        read(line)
