"""The timeline of a scale rehearsal: a row a tick, and what happened between them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from rehearse.core.crowd_view import BotMoved
from rehearse.core.scale.log import LogLine


class TickRow(msgspec.Struct, frozen=True, kw_only=True):
    """One tick as the controller logged it. Loads are shares, 1.0 is full; None: unknown."""

    at_s: float
    mean: float | None
    egress: float | None
    streams: float | None
    cpu: float | None
    binding: str
    capacity: int
    warming: int
    unknown: int
    draining: int
    hits: int
    quiet: int
    action: str
    reason: str


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened."""

    at_s: float
    what: str
    """`launch`, `healthy`, `first-packet`, `capacity`, `first-room`, `cordon`, `skipped`, `moved`, `terminate`."""
    sfu: str
    words: str
    """The event in words, for people."""


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """Both, each in order of time."""

    ticks: list[TickRow]
    events: list[Event]


def timeline(lines: Sequence[LogLine], moves: Iterable[BotMoved], *, began_at: float, began: float) -> Timeline:
    """The timeline, from the fleet's log lines (Unix seconds) and the players' moves (monotonic seconds); each clock's
    beginning is given."""
    ticks = [_tick(line, line.at - began_at) for line in lines if line.has("scale", "tick")]
    cordoned: set[str] = set()
    events = [_event(line, line.at - began_at, cordoned) for line in lines]
    told = [event for event in events if event is not None] + [_moved(move, move.at - began) for move in moves]
    return Timeline(ticks=ticks, events=sorted(told, key=lambda event: event.at_s))


def _tick(line: LogLine, at_s: float) -> TickRow:
    return TickRow(
        at_s=round(at_s, 2),
        mean=line.figure("mean"),
        egress=line.figure("egress"),
        streams=line.figure("streams"),
        cpu=line.figure("cpu"),
        binding=line.fields.get("binding", ""),
        capacity=line.count("capacity"),
        warming=line.count("warming"),
        unknown=line.count("unknown"),
        draining=line.count("draining_own") + line.count("draining_other"),
        hits=line.count("hits"),
        quiet=line.count("quiet"),
        action=line.fields.get("action", ""),
        reason=line.fields.get("reason", ""),
    )


def _event(line: LogLine, at_s: float, cordoned: set[str]) -> Event | None:
    """The event of a line; None for one that tells nothing new."""
    sfu = line.fields.get("sfu", "")
    words = ""
    if line.tag == "pool":
        words = _pool_words(line)
    elif line.has("drain", "cordon"):
        cordoned.add(sfu)
        words = f"cordon {sfu}, which forwards {line.fields.get('streams', '?')} streams"
    elif line.tag == "place" and any(f"{each}:cordoned" in line.fields.get("rejected", "") for each in cordoned):
        who = f"{line.fields.get('player')} of {line.fields.get('room')}"
        words = f"{who} is placed on {sfu}: the cordoned one is skipped"
        return Event(at_s=round(at_s, 2), what="skipped", sfu=sfu, words=words)
    return Event(at_s=round(at_s, 2), what=line.words, sfu=sfu, words=words) if words else None


def _pool_words(line: LogLine) -> str:
    sfu, after = line.fields.get("sfu", ""), f"{line.fields.get('after_s', '?')} s after the launch"
    match line.words:
        case "launch":
            return f"a node is launched, request {line.fields.get('request', '?')}"
        case "healthy":
            return f"{sfu} is healthy, {after}"
        case "first-packet":
            return f"{sfu} has forwarded its first packet, {after}"
        case "capacity":
            return f"{sfu} is capacity, {after}"
        case "first-room":
            return f"{sfu} has its first room, {after}"
        case "terminate":
            streams, egress = line.fields.get("streams", "?"), line.fields.get("egress_bps", "?")
            return f"{sfu} is told to end: {streams} streams, {egress} bit/s"
    return ""


def _moved(move: BotMoved, at_s: float) -> Event:
    words = f"{move.bot} of {move.room} has moved from {move.left} to {move.sfu}"
    return Event(at_s=round(at_s, 2), what="moved", sfu=move.sfu, words=words)
