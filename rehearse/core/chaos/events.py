"""What a chaos run does to a fleet, and who may feel it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import msgspec

EVERYTHING = "*"
"""The target of an event that is not about one program."""


class ChaosKind(StrEnum):
    """One way to trouble a fleet. Each is undone when its time is over: restarted, continued, joined again."""

    KILL_ROUTER = "kill-router"
    """SIGKILL; started again under the same name and address."""
    END_ROUTER = "end-router"
    """SIGTERM; started again."""
    PAUSE_ROUTER = "pause-router"
    """SIGSTOP, later SIGCONT: it comes back with what it knew before."""
    KILL_SFU = "kill-sfu"
    """SIGKILL; started again with the same id."""
    DRAIN_SFU = "drain-sfu"
    """SIGTERM; started again with the same id once it has ended."""
    PAUSE_SFU = "pause-sfu"
    KILL_REDIS = "kill-redis"
    """SIGKILL; started again without its data."""
    PAUSE_REDIS = "pause-redis"
    FLUSH_REDIS = "flush-redis"
    """All its keys are deleted while it runs."""
    CUT_LINKS = "cut-links"
    """The websockets between an SFU, or all of them, and the routers are closed and refused."""
    FREEZE_LINKS = "freeze-links"
    """The same websockets stay open and carry nothing."""
    CUT_PLAYERS = "cut-players"
    """The players' websockets to a router are closed and refused."""
    FREEZE_PLAYERS = "freeze-players"
    CUT_SIGNALLING = "cut-signalling"
    """The players' websockets to an SFU are closed and refused; UDP flows."""
    FREEZE_SIGNALLING = "freeze-signalling"
    CUT_MEDIA = "cut-media"
    """Every datagram between players and an SFU is lost; all websockets work."""
    CORDON = "cordon"
    """An operator cordons an SFU, and uncordons it afterwards."""
    STALL_ALL = "stall-all"
    """Every program and the bots stand still, as on a machine that has no CPU for them."""


class Aim(StrEnum):
    """What a kind is aimed at."""

    ROUTER = "router"
    SFU = "sfu"
    REDIS = "redis"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Traits:
    """What is known of a kind."""

    target: Aim
    weight: int = 2
    """How often it comes, relative to the others."""
    media: bool = False
    """It stops media itself: players who share a room with one on that SFU may hear it."""
    least_s: float = 1.0
    most_s: float = 40.0
    silent: bool = False
    """The SFU can't report: routers must stop to call it placeable."""
    unavailable: bool = False
    """The target can take no new players meanwhile."""


TRAITS = {
    ChaosKind.KILL_ROUTER: Traits(Aim.ROUTER, unavailable=True),
    ChaosKind.END_ROUTER: Traits(Aim.ROUTER, unavailable=True),
    ChaosKind.PAUSE_ROUTER: Traits(Aim.ROUTER, unavailable=True),
    ChaosKind.KILL_SFU: Traits(Aim.SFU, media=True, silent=True, unavailable=True),
    ChaosKind.DRAIN_SFU: Traits(Aim.SFU, unavailable=True),
    ChaosKind.PAUSE_SFU: Traits(Aim.SFU, media=True, silent=True, unavailable=True),
    ChaosKind.KILL_REDIS: Traits(Aim.REDIS),
    ChaosKind.PAUSE_REDIS: Traits(Aim.REDIS),
    ChaosKind.FLUSH_REDIS: Traits(Aim.REDIS, most_s=1.0),
    ChaosKind.CUT_LINKS: Traits(Aim.SFU, silent=True, unavailable=True),
    ChaosKind.FREEZE_LINKS: Traits(Aim.SFU, silent=True, unavailable=True),
    ChaosKind.CUT_PLAYERS: Traits(Aim.ROUTER, unavailable=True),
    ChaosKind.FREEZE_PLAYERS: Traits(Aim.ROUTER, unavailable=True),
    ChaosKind.CUT_SIGNALLING: Traits(Aim.SFU, unavailable=True),
    ChaosKind.FREEZE_SIGNALLING: Traits(Aim.SFU, unavailable=True),
    ChaosKind.CUT_MEDIA: Traits(Aim.SFU, media=True, unavailable=True),
    ChaosKind.CORDON: Traits(Aim.SFU, unavailable=True),
    # Consent lasts 15 s: a longer stall of everything ends peer connections by right.
    ChaosKind.STALL_ALL: Traits(Aim.ALL, media=True, most_s=10.0),
}


class ChaosEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One event of the plan."""

    number: int
    """Counts the events of a run from 1."""
    round: int
    kind: ChaosKind
    target: str
    """A router's or SFU's name, `redis`, or `*`."""
    offset_s: float
    """From the beginning of its round."""
    lasts_s: float

    @property
    def traits(self) -> Traits:
        return TRAITS[self.kind]

    @property
    def ends_s(self) -> float:
        """From the beginning of its round."""
        return self.offset_s + self.lasts_s

    def __str__(self) -> str:
        where = "" if self.target in (EVERYTHING, "redis") else f" {self.target}"
        return f"event {self.number} ({self.kind.value}{where} for {self.lasts_s:.1f} s)"
