"""What a rehearsal comes to: what was seen while SFUs ended, summed up, and whether a player was cut."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum

import msgspec

from rehearse.core.ending import Ending, Failure
from rehearse.core.gaps import ON_LOOPBACK, Bounds, LongestGaps, gaps_beyond
from shared.fleet_rows import short

STALL_MATTERS_MS = 20.0
"""From here on this machine's own stalls may be the reason for a gap beyond the bounds: one audio packet's time."""
MOVES_BOUND = 2
"""Most moves of one player in a roll: off its SFU, and at most once more when replacements fill up."""
REJOIN_BOUND_S = 5.0
"""Longest silence of a player whose SFU was ended by force or died, until it is heard again elsewhere."""


class RehearsalKind(StrEnum):
    """What is rehearsed."""

    DRAIN = "drain"
    """SIGTERM to one SFU; it ends when its players have moved."""
    EXIT = "exit"
    """A forced exit of a cordoned SFU whose players stayed."""
    ROLL = "roll"
    """Every SFU is replaced, one after another, the replacement first."""


class RehearsalReport(msgspec.Struct, frozen=True, kw_only=True):
    """A rehearsal's result, as `--json` prints it. The first twelve keys are what scripts rely on."""

    players_moved: int
    players_stayed: int
    """Players that were on an ending SFU until its end."""
    players_evicted: int
    """Players that were there when the SFU closed its transports, by its own report."""
    failed_connections: int
    """Media connections that a player opened and that came to nothing."""
    audio_gap_ms_max: float | None
    video_gap_ms_max: float | None
    cordon_to_last_told_ms: float | None
    cordon_to_last_move_s: float | None
    cordon_to_exit_s: float | None
    sfu_exit_codes: list[int | None]
    producers_at_exit: int
    consumers_at_exit: int
    kind: str
    passed: bool
    cut: list[str]
    """Why it did not pass, one sentence each."""
    sfus_ended: list[str]
    players_rejoined: int
    exit_order_to_last_rejoin_s: float | None
    machine_stall_ms_max: float | None
    """Longest time for which an idle process of this machine was kept waiting meanwhile [ms]: gaps of that size are the
    machine's, not the fleet's."""
    video_frame_ms: float
    audio_gap_ms_bound: float | None
    """None: a forced exit has no bound but the time to rejoin."""
    video_gap_ms_bound: float | None
    bots: int
    rooms: int
    sfus: int
    routers: int
    seed: int
    redis_server: str = ""
    took_s: float = 0.0
    moves_per_player_max: int = 0
    """Most moves that one player made."""
    interruptions: int = 0
    """How often the command of a roll was killed and given again."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Scale:
    """Who took part."""

    bots: int
    rooms: int
    sfus: int
    routers: int
    seed: int
    redis_server: str = ""


def summarize(
    kind: RehearsalKind,
    endings: Sequence[Ending],
    *,
    gaps: LongestGaps,
    failures: Sequence[Failure],
    scale: Scale,
    bounds: Bounds = ON_LOOPBACK,
    stall_ms: float | None = None,
    took_s: float = 0.0,
    moves: int = 0,
    roll: Sequence[str] = (),
    interruptions: int = 0,
) -> RehearsalReport:
    """The report over all endings of a rehearsal: counts are summed, times and gaps are the worst ones.

    `moves`: the most that one player made; `roll`: why the roll paused or did not end.
    """
    failures = counted(kind, endings, failures)
    cut = verdict(kind, endings, gaps=gaps, failures=failures, bounds=bounds)
    cut += roll
    if kind is RehearsalKind.ROLL and moves > MOVES_BOUND:
        cut.append(f"a player moved {moves} times; bound {MOVES_BOUND}")
    reports = [ending.report for ending in endings if ending.report is not None]
    told = _worst((at, ending.began) for ending in endings for at in ending.told.values())
    return RehearsalReport(
        kind=kind.value,
        passed=not cut,
        cut=cut,
        players_moved=sum(len(ending.moved) for ending in endings),
        players_stayed=sum(len(ending.stayed) for ending in endings),
        players_evicted=sum(report.evicted for report in reports),
        players_rejoined=sum(len(ending.rejoined) for ending in endings),
        failed_connections=len(failures),
        machine_stall_ms_max=short(stall_ms),
        audio_gap_ms_max=short(gaps.audio_ms),
        video_gap_ms_max=short(gaps.video_ms),
        video_frame_ms=round(gaps.frame_ms, 2),
        audio_gap_ms_bound=bounds.audio_ms if kind is not RehearsalKind.EXIT else None,
        video_gap_ms_bound=round(bounds.video_frames * gaps.frame_ms, 1) if kind is not RehearsalKind.EXIT else None,
        cordon_to_last_told_ms=short(None if told is None else told * 1000),
        cordon_to_last_move_s=short(_worst((a, e.began) for e in endings for a in e.moved.values())),
        cordon_to_exit_s=short(_worst((e.ended, e.began) for e in endings)),
        exit_order_to_last_rejoin_s=short(_worst((a, e.ordered) for e in endings for a in e.rejoined.values())),
        sfu_exit_codes=[ending.exit_code for ending in endings],
        sfus_ended=[ending.sfu for ending in endings],
        producers_at_exit=sum(report.producers_at_exit for report in reports),
        consumers_at_exit=sum(report.consumers_at_exit for report in reports),
        **asdict(scale),
        took_s=round(took_s, 1),
        moves_per_player_max=moves,
        interruptions=interruptions,
    )


def counted(kind: RehearsalKind, endings: Sequence[Ending], failures: Sequence[Failure]) -> list[Failure]:
    """The failures that count. After a forced exit the room names the SFU until its players are back elsewhere,
    and a player that is back early tries there in vain: that is part of the force, and bounded by the rejoin time."""
    forced = {ending.sfu for ending in endings} if kind is RehearsalKind.EXIT else set()
    return [failure for failure in failures if failure.sfu not in forced]


def verdict(
    kind: RehearsalKind,
    endings: Sequence[Ending],
    *,
    gaps: LongestGaps,
    failures: Sequence[Failure],
    bounds: Bounds = ON_LOOPBACK,
) -> list[str]:
    """Every reason to say that a player was cut; empty when none was.

    Drain and roll: no player evicted, no connection failed, and no gap beyond the bounds. A forced exit evicts by
    definition: there, everybody must be told and be back elsewhere within `REJOIN_BOUND_S`. In all: status 0.
    """
    cut: list[str] = []
    if not endings:
        cut.append("no SFU ended")
    for ending in endings:
        cut += _cut_at(kind, ending)
    cut += [f"a media connection failed: {failure}" for failure in failures]
    if kind is not RehearsalKind.EXIT:
        cut += gaps_beyond(gaps, bounds)
    return cut


def advice(report: RehearsalReport) -> str:
    """What else a gap beyond the bounds may come from; empty when nothing speaks for it."""
    gaps = ((report.audio_gap_ms_max, report.audio_gap_ms_bound), (report.video_gap_ms_max, report.video_gap_ms_bound))
    beyond = any(gap is not None and bound is not None and gap > bound for gap, bound in gaps)
    stall_ms = report.machine_stall_ms_max or 0.0
    if report.passed or not beyond or stall_ms < STALL_MATTERS_MS:
        return ""
    return (
        f"this machine is busy: it kept an idle process waiting for {stall_ms:.0f} ms, and gaps of that size may be "
        "its own; try again when less else runs here, or with fewer --bots"
    )


def _cut_at(kind: RehearsalKind, ending: Ending) -> list[str]:
    cut: list[str] = []
    if ending.exit_code != 0:
        ended = "did not end in time" if ending.exit_code is None else f"ended with status {ending.exit_code}"
        cut.append(f"{ending.sfu} {ended}")
    if ending.never_told:
        cut.append(f"{ending.sfu}: {_names(ending.never_told)} never heard of the cordon")
    if ending.report is None:
        cut.append(f"{ending.sfu} left no drain report")
    elif ending.report.evicted and kind is not RehearsalKind.EXIT:
        cut.append(f"{ending.sfu} evicted {ending.report.evicted} players")
    if ending.left_behind:
        cut.append(f"{ending.sfu}: {_names(ending.left_behind)} did not come back elsewhere")
    if kind is not RehearsalKind.EXIT and ending.stayed - ending.left_behind:
        cut.append(f"{ending.sfu}: {_names(ending.stayed - ending.left_behind)} lost it and had to rejoin")
    if kind is RehearsalKind.EXIT and ending.ordered is not None:
        late = {who for who, at in ending.rejoined.items() if at - ending.ordered > REJOIN_BOUND_S}
        if late:
            cut.append(f"{ending.sfu}: {_names(late)} took more than {REJOIN_BOUND_S:.0f} s to rejoin")
    return cut


def _worst(spans: Iterable[tuple[float | None, float | None]]) -> float | None:
    """The longest of the spans `(end, begin)`; None when there is none or one has no end."""
    lengths: list[float] = []
    for end, begin in spans:
        if end is None or begin is None:
            return None
        lengths.append(end - begin)
    return max(lengths, default=None)


def _names(players: Iterable[str]) -> str:
    names = sorted(players)
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
