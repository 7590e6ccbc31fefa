"""One placement in words, with the scores that decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cli.output import plain
from operators.core.since import at_time
from shared.logs import visible
from shared.placement_records import PlacementCandidate, PlacementRecord

WHY = {
    "sticky": "its room is there, and that SFU takes new work",
    "chosen": "its room had no SFU; the best one by {sort_by}",
    "replaced": "its room can't stay on {room_had}{because}; the best one by {sort_by}",
    "excluded": "its room's SFU is one that this player can't use or wants to leave",
    "last-resort": "the player had excluded it, but there is no other",
    "no-sfu": "no SFU is alive and takes new work",
}
"""What decided, for each reason that a record can have."""
PASSED_OVER = {
    "failing-connections": "connections to it failed for many",
    "joins-too-fast": "players were joining faster than the cap",
    "not-warmed-up": "not warmed up yet",
    "rolled-next": "a roll will replace it next",
    "other-cell": "in another cell",
    "other-version": "of another release",
    "leaving": "the player wants to leave it",
    "excluded": "the player could not reach it",
    "treated-as-cordoned": "a player was told that it is cordoned",
    "stale": "not heard of for 5 s",
    "missing": "its record had left Redis",
    "unknown-sfu": "gone",
    "unknown-status": "in a status of a newer release",
}
"""Reasons that need more words."""
ASKED = {
    "join": "joined",
    "resume": "resumed its session",
    "cordoned": "moved off a cordoned SFU",
    "asked": "was asked to move",
    "lost": "lost its SFU",
    "failed": "could not connect",
    "reassign": "asked for another SFU",
}
PERCENT = frozenset({"load", "cpuload"})


def story(who: str, records: Sequence[PlacementRecord], *, names: Mapping[str, str] = {}) -> RenderableType:
    """All of them, newest first; `names` are those that others see, by session id, of players who are there."""
    count = "1 placement" if len(records) == 1 else f"{len(records)} placements, newest first"
    return Group(
        Text.assemble((visible(who), "bold"), f": {count}"), *(part for each in records for part in _told(each, names))
    )


def _told(record: PlacementRecord, names: Mapping[str, str]) -> list[RenderableType]:
    parts: list[RenderableType] = ["", _headline(record, names.get(record.player, "")), plain(f"  {why(record)}")]
    if record.candidates:
        parts.append(_candidates(record))
    if record.rejected:
        named = ", ".join(f"{each.sfu} ({PASSED_OVER.get(each.why, each.why)})" for each in record.rejected)
        parts.append(plain(f"  not eligible: {named}"))
    return parts


def _headline(record: PlacementRecord, name: str) -> Text:
    did = ASKED.get(record.cause, record.cause)
    where = plain(record.sfu, "green") if record.sfu else Text("nowhere", style="red")
    called = record.identity if name in ("", record.identity) else f"{name} ({record.identity})"
    who = visible(f"{called} {did} in {record.room}")
    by = plain(f"{record.reason}, by {record.router}", "dim")
    return Text.assemble(f"{at_time(record.at)}  {who} → ", where, "  ", by)


def why(record: PlacementRecord) -> str:
    """What decided, in a sentence."""
    reasons = {each.sfu: each.why for each in record.rejected}
    reasons |= {each.sfu: each.passed_over for each in record.candidates if each.passed_over}
    left = reasons.get(record.room_had, "")
    because = f" ({PASSED_OVER.get(left, left)})" if left else ""
    told = WHY.get(record.reason)  # a reason of a newer version speaks for itself
    words = {"sort_by": record.sort_by, "room_had": record.room_had or "?", "because": because}
    sentence = told.format(**words) if told else record.reason
    wishes = [f"prefers cell {record.cell}"] if record.cell else []
    wishes += [f"the room runs on {record.version}"] if record.version else []
    wishes += [f"every SFU was over the {record.kind} limit, so it was ignored"] if record.limit_ignored else []
    return "; ".join((sentence, *wishes))


def _candidates(record: PlacementRecord) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", show_edge=False)
    for column in ("", "eligible", plain(record.sort_by), "in flight", "compared", ""):
        table.add_column(column)
    for each in record.candidates:
        chosen = each.sfu == record.sfu
        table.add_row(
            "  →" if chosen else "   ",
            plain(each.sfu, "green" if chosen else ""),
            _figure(each.figure, record.sort_by),
            f"+{each.in_flight}" if each.in_flight else "–",
            _compared(each, record.sort_by),
            plain(PASSED_OVER.get(each.passed_over, each.passed_over), "yellow"),
        )
    return table


def _compared(candidate: PlacementCandidate, sort_by: str) -> str:
    return _figure(None if candidate.figure is None else candidate.corrected, sort_by)


def _figure(value: float | None, sort_by: str) -> str:
    if value is None:
        return "unknown"
    if sort_by == "random":
        return "–"
    return f"{value:.1%}" if sort_by in PERCENT else f"{value:.6g}"
