"""What a router asks of the store when it places a player, and what it is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from shared.records import RoomPlacement

Version = tuple[int, int]
Key = tuple[int, float]
"""What is compared to choose an SFU, the smaller the better: a rank, and on one rank a figure."""
IN_FLIGHT_LIFE_S = 20
"""A placement that no report has shown by then counts no longer: jicofo's 20 s for participants just sent somewhere."""
REPORTS_UNTIL_SHOWN = 2
"""Reports of an SFU after which they show a placement. An SFU reports once a second: the first report after a join may
have been on its way before it, and media takes a second to flow."""
KEPT = 0
"""The rank of the SFU that a room is to keep, before all others."""
OTHER = 1
"""The lowest digit of a rank, which all ranks but `KEPT` have. `router.core.selector.ladder` has the others."""
TOO_FAST = 1 << 6
"""The digit of a rank that says: players join this SFU faster than the cap."""


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
    rank: int = OTHER
    """An offer of a lower rank goes first, whatever the figures say."""
    figure: float = 0.0
    """What sorts, smaller is better; without what is in flight."""
    cost: float = 0.0
    """What each placement in flight adds to it."""

    def key(self, in_flight: int, *, too_fast: bool = False) -> Key:
        """What is compared, here and in `place_room.lua`: with so many placements that the figure does not show yet.

        `too_fast`: players join it faster than the cap.
        """
        return (self.rank | TOO_FAST if too_fast else self.rank, self.figure + in_flight * self.cost)


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
    max_joins_per_s: float = 0.0
    """Above this an SFU is chosen only when all are; 0: no cap."""
    more: bool = False
    """The caller knows of SFUs that it does not offer: when the best that it offers is above the cap, nothing is placed
    and `TooFast` tells it to offer others."""

    @property
    def all(self) -> tuple[Offer, ...]:
        """All offers; the one to keep goes first of all, and stands in for its like."""
        if self.keep is None:
            return self.offers
        keep = replace(self.keep, rank=KEPT)
        return (keep, *(offer for offer in self.offers if offer.sfu != keep.sfu))


@dataclass(frozen=True, slots=True, kw_only=True)
class InFlightThere:
    """What the store has counted for one SFU: before the placement it is asked for, or with the join it is told of."""

    counts: Mapping[Version, Counts] = field(default_factory=dict)
    """The counts, by the version of the report that decided."""
    joins_per_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedRoom:
    """Where the room is now."""

    placement: RoomPlacement
    fresh: bool = False
    """True: this request has placed it; false: it was there before."""
    in_flight: Mapping[str, InFlightThere] = field(default_factory=dict)
    """What is in flight, by SFU, for each SFU that was offered."""


class TooFast(Exception):
    """Players join the best of the offers faster than the cap; nothing has been placed, since there is `Wish.more`."""

    def __init__(self, in_flight: Mapping[str, InFlightThere]) -> None:
        super().__init__("the best that was offered is over the cap on joins")
        self.in_flight = in_flight
        """What is in flight, by SFU, for each SFU that was offered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failing:
    """An SFU to which connections fail for many."""

    sfu: str
    incarnation: int
    left_s: float
    """For how long yet the SFU is left out, by the store's clock [s]."""


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
    """They fail for more than this share of the players that were sent there; 1: never."""
    players: int = 30
    """At least so many players must have been sent there, or nothing is known of the SFU."""
    window_s: float = 120.0
    """Both counted over this time: a link is tried for 12 s, so each player that fails is counted in time."""
    pause_s: float = 60.0
    """For how long the SFU is left out then (jicofo lets a failed node rest for 60 s)."""
