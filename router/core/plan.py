"""What a player asks when it wants an SFU, and the plan for it: which are eligible, and what Redis is asked."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from router.core.selector.decision import Rejected, Standing
from router.core.selector.ladder import NO_PREFERENCE, Preference
from shared.placing import Wish

MAX_EXCLUDES = 16
"""SFUs a player may exclude in one request; more are ignored."""
STILL_CARRIED = frozenset({"cordoned", "asked"})
"""Reasons of `request-sfu` for which the SFU to leave goes on carrying the player (docs/protocol.md, section 4)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A player wants an SFU."""

    room: str
    leave: str = ""
    """The SFU it wants to leave."""
    leave_version: tuple[int, int] = (0, 0)
    """What it was told of it."""
    exclude: Collection[str] = ()
    """SFUs it could not reach."""
    reason: str = ""
    """`cordoned`, `asked`, `lost`, `failed`, or empty for a join."""
    preference: Preference = NO_PREFERENCE

    def avoids(self, sfu: str) -> bool:
        """The player is not to get this one while there is another."""
        return sfu == self.leave or sfu in self.exclude

    @property
    def cause(self) -> str:
        """What made the player ask, in a word for the history."""
        return self.reason or ("reassign" if self.leave else "join")

    @property
    def still_carried(self) -> bool:
        """The SFU to leave carries the player until it has moved: it lives there until then, and never gets it back.

        For any other reason the player has no SFU any more: it lives where it is sent, be it the one it has lost.
        """
        return self.reason in STILL_CARRIED


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementPlan:
    """What to ask the store: keep the room where it is unless that is refused, else the best of the candidates."""

    ask: Ask
    candidates: tuple[Standing, ...]
    """What is offered, best first; once the store has answered, as it stood when the store decided."""
    rejected: tuple[Rejected, ...] = ()
    limit_ignored: bool = False
    last_hope: bool = False
    """No SFU is placeable; the candidates are those whose record is missing, which may be Redis' loss, not theirs."""
    claims_ignored: bool = False
    """What players of the room claim to be cordoned is all that takes work: a claim never takes the last SFU."""
    room_had: str = ""
    """Where this router believed the room to be."""
    keep: Standing | None = None
    """That SFU, if the room may stay there."""
    wish: Wish
    """All this as the store takes it."""

    @property
    def eligible(self) -> tuple[str, ...]:
        """Where the player may go, best first; not necessarily all there are."""
        return tuple(each.sfu for each in self.candidates)
