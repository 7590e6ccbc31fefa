"""What a router asks of the store when it places a player, and what it is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from shared.records import RoomPlacement

Version = tuple[int, int]
IN_FLIGHT_LIFE_S = 20
"""A placement that no report has shown by then counts no longer: jicofo's 20 s for participants just sent somewhere."""


class Counts(NamedTuple):
    """Placements on one SFU that its reports do not show yet (P4)."""

    joins: int = 0
    rooms: int = 0
    """Rooms that were new there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One SFU that a room may be placed on."""

    sfu: str
    version: Version = (0, 0)
    """`(incarnation, revision)` of the report that the figure is from."""
    level: int = 0
    """An offer of a lower level goes first, whatever the figures say."""
    figure: float = 0.0
    """What sorts, smaller is better; without what is in flight."""
    cost: float = 0.0
    """What each placement in flight adds to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A router's request to place one room, and to count one join (P2, P3, P4)."""

    offers: tuple[Offer, ...]
    """SFUs to choose from, in the caller's order, which breaks ties."""
    keep: Offer | None = None
    """Where the caller believes the room to be, if that takes new work: chosen when the store has lost the room."""
    refuse: tuple[str, ...] = ()
    """SFUs the room may not stay on: the caller knows that they take no new work."""
    join: bool = True
    """Count a join on the SFU that is answered. False: the caller's player goes elsewhere."""
    per_room: bool = False
    """New rooms add `Offer.cost`, not joins."""
    reports_until_shown: int = 2
    """Revisions after which a report shows what was placed before."""
    max_joins_per_s: float = 0.0
    """Above this an SFU is chosen only when all are; 0: no cap."""
    more: bool = False
    """The caller knows of SFUs that it does not offer: when all that it offers are above the cap, nothing is placed and
    `TooFast` tells it to offer others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InFlightThere:
    """What the store has counted for one SFU: before the placement it is asked for, or with the join it is told of."""

    counts: Mapping[Version, Counts] = field(default_factory=dict)
    """By the version of the report that decided."""
    joins_per_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedRoom:
    """Where the room is now."""

    placement: RoomPlacement
    fresh: bool = False
    """True: this request has placed it; false: it stood there."""
    in_flight: Mapping[str, InFlightThere] = field(default_factory=dict)
    """By SFU, for each that was offered."""


class TooFast(Exception):
    """Players join all that was offered faster than the cap; nothing has been placed, since there is `Wish.more`."""

    def __init__(self, in_flight: Mapping[str, InFlightThere]) -> None:
        super().__init__("all that was offered is over the cap on joins")
        self.in_flight = in_flight
        """By SFU, for each that was offered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failing:
    """An SFU to which connections fail for many."""

    sfu: str
    incarnation: int
    left_s: float
    """For how long yet it is left out, by the store's clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tries:
    """Who was sent to one run of an SFU, and who said that no connection came about; words that stand for players."""

    sfu: str
    incarnation: int
    tried: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureRule:
    """When connections fail for many."""

    share: float = 0.1
    """More than this share of the players that were sent there ..."""
    players: int = 30
    """... of at least so many ..."""
    window_s: float = 120.0
    """... within this time."""
    pause_s: float = 60.0
    """For how long the SFU is left out then (jicofo lets a failed node rest for 60 s)."""
