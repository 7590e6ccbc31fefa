"""The history of placements in Redis: where each player was sent, and everything that decided it (P5)."""

from __future__ import annotations

from shared.records import Int, Record


class PlacementCandidate(Record, frozen=True, kw_only=True):
    """An SFU that was eligible."""

    sfu: str
    figure: float | None = None
    """What its report said, in the unit of `sort_by`; None: nothing."""
    in_flight: Int = 0
    """Placements that the report could not show yet, of all routers."""
    corrected: float = 0.0
    """The figure with them: what was compared."""
    passed_over: str = ""
    """Why it stood behind others regardless of that; empty: it did not."""


class PlacementReject(Record, frozen=True, kw_only=True):
    """An SFU that was not eligible, or not for this player."""

    sfu: str
    why: str = ""


class PlacementRecord(Record, frozen=True, kw_only=True):
    """One player's placement."""

    id: str
    """Unique: the router and a number of its own."""
    at: float = 0.0
    """By the router's clock [Unix seconds], for people; the order of the history is the list's."""
    router: str = ""
    room: str = ""
    identity: str = ""
    player: str = ""
    """Session id."""
    cause: str = ""
    """What made the player ask: `join`, `resume`, or the reason of its `request-sfu`."""
    sfu: str = ""
    """Where it was sent; empty: nowhere."""
    reason: str = ""
    """What decided: a `router.core.assignment.PlacementReason`."""
    room_had: str = ""
    """The SFU the room had before; empty: none that the router knew of."""
    leave: str = ""
    """The SFU that the player wanted to leave."""
    kind: str = ""
    sort_by: str = ""
    limit_ignored: bool = False
    cell: str = ""
    """The cell that the player prefers."""
    version: str = ""
    """The release that its room was to stay on."""
    candidates: tuple[PlacementCandidate, ...] = ()
    """The first of those that were eligible, best first."""
    rejected: tuple[PlacementReject, ...] = ()
    """Some of those that were not."""
