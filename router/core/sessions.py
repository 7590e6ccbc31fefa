"""A player's session on this router: who it is, where its websocket is, and until when it may be resumed."""

from __future__ import annotations

from typing import Protocol

from shared.records import PlayerRecord
from shared.tokens import ResumeClaims


class PlayerWire(Protocol):
    """A player's websocket, as core sees it: something that a frame can be put on without waiting."""

    def put(self, frame: bytes) -> None:
        """Put a text frame on the wire; never blocks, never raises."""

    def end(self, code: int, reason: str) -> None:
        """Close with a typed code; nothing happens when it is closed already."""


class Session:
    """One player here. Lean on purpose: a router holds tens of thousands (`bench notify`: < 25 KiB each)."""

    __slots__ = (
        "claims",
        "detached",
        "home_at",
        "missing",
        "next_sfu",
        "provisional",
        "room",
        "run_tried",
        "taken_over_blind",
        "tried",
        "trying",
        "wire",
    )

    def __init__(
        self, claims: ResumeClaims, *, wire: PlayerWire | None, home_at: float, provisional: bool = False
    ) -> None:
        self.claims = claims
        """Who it is and what it may do; also what its resume token says."""
        self.room = claims.room
        self.wire = wire
        """None while its websocket is lost and the resume window runs."""
        self.detached: float | None = None
        """When the websocket was lost, by our monotonic clock."""
        self.home_at = home_at
        """Since when its SFU is its SFU [Unix seconds], for people."""
        self.missing: tuple[str, ...] = ()
        """What of its media does not get through, as it has said: `send`, `receive`."""
        self.next_sfu = ""
        """Where it was told to move; it is at home on the old one until it says `moved`."""
        self.trying = ""
        """Where it was sent last, until it has said that media flows there or that it could not connect."""
        self.tried = 0.0
        """When that was, by our monotonic clock."""
        self.run_tried = 0
        """The incarnation that it was sent to: what fails on one run says nothing of the next."""
        self.taken_over_blind = False
        """Resumed here while Redis was away, which may still name the router before; until a reading names us."""
        self.provisional = provisional
        """Begun without Redis: its epoch is our guess until Redis has confirmed it."""

    @property
    def player(self) -> str:
        return self.claims.player

    def record(self, *, router: str, known: PlayerRecord | None = None) -> PlayerRecord:
        """A fresh record of this player, with what `known` says of its doings."""
        known = known or PlayerRecord(player=self.claims.player, identity=self.claims.identity)
        return PlayerRecord(
            player=self.claims.player,
            identity=self.claims.identity,
            name=self.claims.name,
            sfu=known.sfu,
            presence=known.presence,
            stay=known.stay,
            router=router,
            epoch=self.claims.epoch,
        )
