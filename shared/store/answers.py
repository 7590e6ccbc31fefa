"""What the store answers, where a plain record does not say it all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from shared.records import PlayerRecord, PublicationRecord, RoomPlacement, RouterRecord, SfuState, every_field
from shared.scaling_records import ScalingRecord, ScalingState


@dataclass(frozen=True, slots=True)
class PutSfu:
    """What became of a state that was written."""

    accepted: bool
    """False: a newer state is known, or this incarnation was unregistered."""
    started_at: float | None = None
    """When this incarnation was first seen, by Redis' clock [Unix seconds]; None while none is known."""
    cordoned_at: float | None = None
    """Since when it takes no new work, by Redis' clock [Unix seconds]; None while it does."""
    incarnation: int = 0
    """The incarnation that is stored now; after a refusal the floor above which the SFU must raise its own."""
    revision: int = 0
    """The revision that is stored now."""
    taken: bool = False
    """Refused because another process with this id wrote its state a moment ago."""


@dataclass(frozen=True, slots=True)
class HeardSfu:
    """An SFU's newest state and how old it is."""

    state: SfuState
    silent_for_s: float | None = None
    """Since it had a new revision, by Redis' clock [seconds]; None: written by an older router, which did not say."""


@dataclass(frozen=True, slots=True)
class HeardRouter:
    """A router's record and how old it is."""

    router: RouterRecord
    silent_for_s: float = 0.0
    """Since it was written, by Redis' clock [seconds]."""


@dataclass(frozen=True, slots=True)
class EnteredRoom:
    """A session has begun."""

    epoch: int
    """Greater than that of every earlier session of the identity in this room, also across a loss of the store."""
    replaced: tuple[str, ...] = ()
    """Older sessions of the identity, which have left with this."""


@dataclass(frozen=True, slots=True)
class RoomRecord:
    """All that the store knows of a room."""

    version: int = 0
    """Grows with each change; 0 when there is no such room. Never the same for two contents of a room."""
    players: Mapping[str, PlayerRecord] = field(default_factory=dict)
    """The players by session id."""
    publications: Mapping[str, PublicationRecord] = field(default_factory=dict)
    """The publications by id."""
    placement: RoomPlacement | None = None


class WakeKind(StrEnum):
    """What a hint is about."""

    SFU = "sfu"
    """`target` is an SFU's id: its state changed."""
    ROOM = "room"
    """`target` is a room: its players, publications or placement changed."""
    EXIT = "exit"
    """An exit order was given; no target."""
    COMMAND = "command"
    """`target` is an SFU's id: an operator's command waits for it."""


@dataclass(frozen=True, slots=True)
class Wake:
    """A hint that something changed: may be late, lost or doubled. The truth is read again."""

    kind: WakeKind
    target: str = ""


@dataclass(frozen=True, slots=True)
class Gap:
    """Hints may have been lost up to here: read everything again."""


@dataclass(frozen=True, slots=True)
class Leader:
    """The controller that may scale."""

    controller: str
    token: int
    """Its fencing token."""
    left_s: float
    """What is left of its lease, by Redis' clock."""


@dataclass(frozen=True, slots=True)
class Term:
    """What came of asking for the scaling lease."""

    mine: bool
    leader: Leader


@dataclass(frozen=True, slots=True)
class Scaling:
    """What there is to see of the autoscaler."""

    leader: Leader | None = None
    state: ScalingState | None = None
    records: tuple[ScalingRecord, ...] = ()
    """Newest first."""

    def answer(self) -> dict[str, Any]:
        """What the API and `sluice scaling --json` give: every field, so that readers need not know the defaults."""
        leader = asdict(self.leader) if self.leader else None
        return {"leader": leader, "state": every_field(self.state), "records": every_field(self.records)}
