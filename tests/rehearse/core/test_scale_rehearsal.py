"""A scale rehearsal judged from what was seen: the pattern in the logs, the audit, the replay, each promise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from bench.plot import check_plot
from cli.output import out
from cli.scale_plot import plot_scale
from cli.scale_report import scale_report
from control.core.autoscaler.effects import Launch, LeaseCordon, Terminate, TickDecision
from control.core.autoscaler.line import effect_line, tick_line
from rehearse.core.crowd_view import BotMoved
from rehearse.core.ending import Failure
from rehearse.core.gaps import LongestGaps
from rehearse.core.scale.log import LogLine, merged, read_log
from rehearse.core.scale.pattern import first_missing, placed_on_cordoned, scale_in, scale_out
from rehearse.core.scale.plan import PAIR, STREAM_CEILING, TRIO, ScalePlan
from rehearse.core.scale.rehearsal import ScaleReport, Setting, summarize
from rehearse.core.scale.replay import Replay, TickSeen, replay
from rehearse.core.scale.seen import Seen
from shared.errors import BadSetting
from shared.load import Load, Part
from shared.logs import fields
from shared.records import DrainReport, LoadParts, SfuState
from shared.scaling_records import ScaleAction, ScalingFigures, ScalingRecord, ScalingState

BEGAN = datetime(2026, 3, 1, 12, 0, 0)
SETTINGS = ScalePlan(nodes=2).settings()
NEW, OLD, OTHER = "sfu-new", "sfu-old", "sfu-other"


def tick(action: ScaleAction = ScaleAction.NONE, reason: str = "within-limits", **figures: object) -> str:
    """A tick's line as the controller writes it."""
    known = {"out_window": 5, "quiet_needed": 20, "mean_load": 0.5, "mean_cpu": 0.02, "binding": "streams"}
    decision = TickDecision(
        action=action,
        reason=reason,
        state=ScalingState(),
        records=(),
        effects=(),
        figures=msgspec.convert({**known, **figures}, ScalingFigures),
    )
    return tick_line(decision)


def place(room: str, sfu: str, *, reason: str = "chosen", rejected: str | None = None) -> str:
    return "[place] " + fields(room=room, player="bot-1", sfu=sfu, reason=reason, rejected=rejected)


def story() -> list[tuple[str, str]]:
    """Program and line of a rehearsal that went well; each line comes a second after the one before."""
    control = [
        tick(out_hits=0),
        *(tick(out_hits=hits) for hits in (1, 2, 3)),
        tick(ScaleAction.SCALE_OUT, "hot", out_hits=4),
        effect_line(Launch(request="1-77")),
        f"[pool] launched {fields(request='1-77', node=NEW, sfu=NEW)}",
        f"[pool] healthy {fields(sfu=NEW, after_s='1.5')}",
        f"[pool] first-packet {fields(sfu=NEW, after_s='1.6')}",
        f"[pool] capacity {fields(sfu=NEW, after_s='3.0')}",
    ]
    first_room = [("router-1", place("newcomers", NEW)), ("control", f"[pool] first-room {fields(sfu=NEW, after_s=5)}")]
    quiet = [
        tick(quiet_ticks=0),
        *(tick(quiet_ticks=quiet) for quiet in range(1, 20)),
        tick(ScaleAction.SCALE_IN, "quiet", quiet_ticks=20),
        effect_line(LeaseCordon(node=OLD, sfu=OLD, streams=4)),
    ]
    skipped = [("router-2", place("late", OTHER, rejected=f"{OLD}:cordoned"))]
    ended = effect_line(Terminate(node=OLD, sfu=OLD, streams=0, egress_bps=0.0))
    lines = [("control", each) for each in control] + first_room
    return [*lines, *(("control", each) for each in quiet), *skipped, ("control", ended)]


def logged(lines: list[tuple[str, str]]) -> list[LogLine]:
    """As it is read back."""
    written = []
    for second, (program, line) in enumerate(lines):
        at = (BEGAN + timedelta(seconds=second)).strftime("%Y-%m-%d %H:%M:%S,%f")[:-3]
        written.append(read_log(program, f"{at} INFO    {program} {line}\n"))
    return merged(written)


def ticks(**shares: float) -> list[TickSeen]:
    """Six ticks in which each of two nodes reported these loads."""
    load = Load(**{**dict.fromkeys(("egress", "streams", "cpu"), 0.0), **shares})
    return [TickSeen(tick=number, at=1000.0 + number, loads={OLD: load, OTHER: load}) for number in range(1, 7)]


def record(action: ScaleAction, reason: str, node: str = "") -> ScalingRecord:
    return ScalingRecord(action=action.value, reason=reason, node=node)


def seen() -> Seen:
    """All went well."""
    return Seen(
        began_at=BEGAN.timestamp(),
        began=50.0,
        lines=logged(story()),
        records=[
            record(ScaleAction.SCALE_OUT, "hot"),
            record(ScaleAction.HELD, "launch-in-progress"),
            record(ScaleAction.LAUNCHED, "capacity", NEW),
            record(ScaleAction.SCALE_IN, "quiet", OLD),
            record(ScaleAction.TERMINATED, "empty", OLD),
        ],
        ticks=ticks(streams=0.75, cpu=0.05),
        moves=[BotMoved("bot-1", "lobby", OLD, OTHER, 84.5), BotMoved("bot-2", "lobby", OLD, OTHER, 84.8)],
        on_victim=frozenset({"bot-1", "bot-2"}),
        last_report=SfuState(
            address="", sfu=OLD, players=0, producers=0, load_parts=LoadParts(streams=0, egress_bps=0.0)
        ),
        drain=DrainReport(sfu=OLD, outcome="empty"),
        gone=True,
        gaps=LongestGaps(audio_ms=30.0, video_ms=60.0, frame_ms=50.0),
    )


def judged(what: Seen) -> ScaleReport:
    return summarize(what, Setting(settings=SETTINGS, nodes=2, routers=2, bots=8, seed=1))


# --- the plan ---


@pytest.mark.parametrize("nodes", [2, 3, 8])
def test_a_pair_a_node_is_quiet_and_three_are_hot(nodes: int) -> None:
    settings = ScalePlan(nodes=nodes).settings()
    each = {players: 2 * players * (players - 1) / STREAM_CEILING for players in (PAIR, TRIO)}
    assert each[PAIR] < settings.scale_in_at - 0.04
    assert each[TRIO] > settings.scale_out_at + 0.04
    assert (settings.min_nodes, settings.max_nodes) == (nodes, nodes + 1)
    assert (settings.scale_out_hits, settings.scale_out_window, settings.scale_in_ticks) == (4, 5, 20)


def test_cooldown_and_ticks_are_compressed_alike() -> None:
    settings = ScalePlan(tick_s=0.5).settings()
    assert settings.cooldown_s / settings.tick_s == 300 / 30


@pytest.mark.parametrize("bad", [{"nodes": 1}, {"nodes": 9}, {"tick_s": 0.4}, {"tick_s": 31.0}])
def test_what_can_not_be_rehearsed_is_a_bad_setting(bad: dict[str, float]) -> None:
    with pytest.raises(BadSetting):
        ScalePlan(**bad)  # type: ignore[arg-type]


# --- the log ---


def test_a_line_is_read_with_its_time_tag_words_and_fields() -> None:
    text = "noise\n2026-03-01 12:00:01,250 INFO    control [pool] first-packet sfu=a after_s=1.5\n[place] x=1\n"
    (line,) = read_log("control", text)
    assert line.at == BEGAN.timestamp() + 1.25
    assert line.has("pool", "first-packet", sfu="a")
    assert line.figure("after_s") == 1.5
    assert line.figure("sfu") is None
    assert not line.has("pool", "first-packet", sfu="b")


def test_lines_of_programs_are_merged_by_time_and_keep_their_order_within_a_millisecond() -> None:
    stamp = "2026-03-01 12:00:0{},000 INFO    x [pool] {}\n"
    one = read_log("one", stamp.format(1, "first") + stamp.format(1, "second") + stamp.format(3, "last"))
    two = read_log("two", stamp.format(2, "between"))
    assert [line.words for line in merged([one, two])] == ["first", "second", "between", "last"]


# --- the pattern ---


def missing(lines: list[tuple[str, str]]) -> str:
    read = logged(lines)
    return first_missing(scale_out(read, hits=4, window=5)) or first_missing(scale_in(read, ticks=20))


def test_the_whole_pattern_is_found() -> None:
    assert missing(story()) == ""


def steps(line: tuple[str, str]) -> bool:
    """A line without which the pattern is not whole."""
    return not (line[1].startswith("[scale] tick") and ("hits=0/5" in line[1] and "quiet=0/20" in line[1]))


@pytest.mark.parametrize("left_out", [n for n, line in enumerate(story()) if steps(line)])
def test_each_line_that_is_not_there_is_missed(left_out: int) -> None:
    lines = story()
    del lines[left_out]
    assert "is not in the log after" in missing(lines)


@pytest.mark.parametrize("early", [n for n, line in enumerate(story()) if steps(line)][1:])
def test_each_line_that_comes_too_early_is_missed(early: int) -> None:
    lines = story()
    lines.insert(0, lines.pop(early))
    assert "is not in the log after" in missing(lines)


def test_what_is_missing_is_named_with_what_it_should_follow() -> None:
    lines = [line for line in story() if "capacity sfu" not in line[1]]
    assert missing(lines) == "'capacity' is not in the log after 'first packet'"


def test_a_streak_that_began_again_counts_from_its_new_beginning() -> None:
    lines = story()
    cut = next(index for index, line in enumerate(lines) if "quiet=7/20" in line[1])
    lines[cut:cut] = [("control", tick(quiet_ticks=0)), *(("control", tick(quiet_ticks=n)) for n in range(1, 7))]
    assert missing(lines) == ""


def test_an_end_with_a_stream_left_is_no_end_at_zero() -> None:
    left = effect_line(Terminate(node=OLD, sfu=OLD, streams=1, egress_bps=0.0))
    assert "'terminate at zero'" in missing([*story()[:-1], ("control", left)])


def test_a_router_that_knows_of_a_cordon_never_places_there_again() -> None:
    knows = ("router-1", place("a", OTHER, rejected=f"{OLD}:cordoned"))
    late, other = ("router-1", place("b", OLD)), ("router-2", place("b", OLD))
    assert placed_on_cordoned(logged([late, other, knows, other]), OLD) == []
    assert [line.program for line in placed_on_cordoned(logged([knows, other, late]), OLD)] == ["router-1"]


# --- the replay ---


def test_by_streams_the_recorded_ticks_lead_to_a_node_and_by_cpu_alone_to_nothing() -> None:
    told = ticks(streams=0.75, cpu=0.05)
    full = replay(told, SETTINGS, nodes=2, parts=tuple(Part))
    assert (full.changed, full.changed_at_tick, full.hot_ticks, full.peak) == ("scale-out", 4, 4, 0.75)
    cpu = replay(told, SETTINGS, nodes=2, parts=(Part.CPU,))
    assert (cpu.changed, cpu.changed_at_tick, cpu.hot_ticks, cpu.peak, cpu.ticks) == ("", None, 0, 0.05, 6)


def test_cpu_alone_acts_when_it_is_what_runs_out() -> None:
    cpu = replay(ticks(cpu=0.7), SETTINGS, nodes=2, parts=(Part.CPU,))
    assert (cpu.changed, cpu.changed_at_tick) == ("scale-out", 4)


def test_the_first_nodes_carry_in_the_replay_what_all_nodes_carried() -> None:
    load = Load(egress=0.0, streams=0.0, cpu=0.3)
    told = [TickSeen(tick=1, at=1.0, loads={NEW: load, OLD: load, OTHER: load})]
    assert replay(told, SETTINGS, nodes=2, parts=(Part.CPU,)).peak == 0.45


def test_a_tick_of_which_nothing_is_known_is_neither_hot_nor_quiet() -> None:
    told = [TickSeen(tick=n, at=float(n), loads={OLD: Load()}) for n in range(30)]
    assert replay(told, SETTINGS, nodes=2, parts=(Part.CPU,)) == Replay(
        parts=["cpu"], nodes=2, ticks=30, hot_ticks=0, peak=None, changed="", changed_at_tick=None
    )


# --- the promises ---


def test_a_rehearsal_in_which_all_was_kept_passes() -> None:
    report = judged(seen())
    assert report.broken == []
    assert report.passed
    assert (report.players_moved, report.players_stayed, report.failed_connections) == (2, 0, 0)
    assert (report.launched, report.terminated) == (NEW, OLD)
    assert report.launch_to_capacity_s == 3.0
    assert (report.launch_to_first_room_s, report.cordon_to_terminate_s) == (5.0, 2.0)
    assert (report.streams_at_terminate, report.egress_bps_at_terminate) == (0, 0.0)
    assert msgspec.json.decode(msgspec.json.encode(report), type=ScaleReport) == report


def busy(**figures: object) -> SfuState:
    return msgspec.convert({"address": "", "sfu": OLD, "players": 0, "producers": 0, **figures}, SfuState)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda it: replace(it, stuck="no player moved within 90 s"), "no player moved"),
        (lambda it: replace(it, failures=[Failure("bot-1", NEW, "timeout")]), "bot-1 to sfu-new: timeout"),
        (lambda it: replace(it, evicted=["bot-3"]), "bot-3 lost its media"),
        (lambda it: replace(it, left_on_victim=frozenset({"bot-2"}), moves=it.moves[:1]), "bot-2 never moved off"),
        (lambda it: replace(it, moves=it.moves[:1]), "bot-2 left sfu-old other than by a move"),
        (lambda it: replace(it, moves=[]), "no move was seen"),
        (lambda it: replace(it, lines=it.lines[:8]), "'first packet' is not in the log"),
        (lambda it: replace(it, records=[*it.records, record(ScaleAction.SCALE_OUT, "hot")]), "nothing else"),
        (lambda it: replace(it, records=it.records[:-1]), "the audit must tell"),
        (lambda it: replace(it, last_report=busy(load_parts={"streams": 2, "egress_bps": 0.0})), "streams 2"),
        (lambda it: replace(it, last_report=busy(load_parts={"streams": 0, "egress_bps": 9e3})), "9000.0 bit/s"),
        (lambda it: replace(it, last_report=busy(load_parts={"streams": 0})), "egress of None"),
        (lambda it: replace(it, last_report=None), "never heard of"),
        (lambda it: replace(it, gone=False), "was not ended"),
        (lambda it: replace(it, drain=None), "no drain report"),
        (lambda it: replace(it, drain=DrainReport(sfu=OLD, evicted=1, players_at_exit=1)), "with 1 players"),
        (lambda it: replace(it, ticks=ticks(cpu=0.8)), "CPU alone would have made a scale-out at tick 4"),
        (lambda it: replace(it, ticks=ticks(streams=0.4)), "prove nothing of CPU alone"),
        (lambda it: replace(it, ticks=[]), "no tick's CPU is known"),
        (lambda it: replace(it, gaps=LongestGaps()), "nothing is known of gaps"),
        (lambda it: replace(it, gaps=LongestGaps(audio_ms=41.0, video_ms=20.0, frame_ms=50.0)), "silent for 41 ms"),
        (
            lambda it: replace(it, gaps=LongestGaps(audio_ms=20.0, video_ms=101.0, frame_ms=50.0)),
            "stood still for 101 ms",
        ),
    ],
)
def test_each_promise_can_be_broken_and_says_how(change: Callable[[Seen], Seen], words: str) -> None:
    report = judged(change(seen()))
    assert not report.passed
    assert any(words in sentence for sentence in report.broken), report.broken


def test_the_timeline_tells_ticks_and_events_in_their_order() -> None:
    line = judged(seen()).timeline
    assert [row.hits for row in line.ticks[:5]] == [0, 1, 2, 3, 4]
    assert (line.ticks[4].action, line.ticks[4].at_s, line.ticks[4].cpu) == ("scale-out", 4.0, 0.02)
    assert [event.what for event in line.events] == [
        *("launch", "healthy", "first-packet", "capacity", "first-room"),
        *("cordon", "skipped", "moved", "moved", "terminate"),
    ]
    assert next(event.at_s for event in line.events if event.what == "moved") == 34.5


def test_people_are_told_the_story_and_the_first_broken_promise(capsys: pytest.CaptureFixture[str]) -> None:
    out.print(scale_report(judged(seen())))
    good = capsys.readouterr().out
    for words in ("scale-out: hot", "sfu-new is capacity, 3.0 s after the launch", "no player was cut", "CPU alone"):
        assert words in good
    out.print(scale_report(judged(replace(seen(), evicted=["bot-3"], stuck="stuck here"))))
    assert "not kept stuck here" in capsys.readouterr().out


def test_the_picture_marks_what_happened_and_shows_cpu_and_streams_together() -> None:
    figure = plot_scale(judged(seen()))
    words = {text.get_text() for axes in figure.axes for text in axes.texts}
    assert {"launch", "first packet", "capacity", "first room", "cordon", "move", "end"} <= words
    legend = figure.axes[1].get_legend()
    assert legend is not None
    assert {"streams", "CPU", "egress", "mean load"} == {text.get_text() for text in legend.get_texts()}


def test_a_picture_that_can_not_be_written_is_refused_before_anything_runs(tmp_path: Path) -> None:
    check_plot(tmp_path / "it.png")
    for bad in (tmp_path / "it.gif", tmp_path / "nowhere" / "it.png"):
        with pytest.raises(BadSetting):
            check_plot(bad)
