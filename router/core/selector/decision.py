"""What a choice of SFU is made of and what it came to; the same object feeds log line, metric, history and API (P5)."""

from __future__ import annotations

from dataclasses import dataclass

from shared.placing import Key, Offer
from shared.records import SfuState


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing(Offer):
    """How one SFU stands in a choice: what the store is offered, and what only this router needs to know of it."""

    state: SfuState
    """Its newest report."""
    known: bool = True
    """False: the report does not say the figure, which then counts as 0, behind all that are known."""
    in_flight: int = 0
    """Placements that the report can't show yet (P4)."""
    passed_over: str = ""
    """Why it stands behind others regardless of its figure; empty: it does not."""

    @property
    def order(self) -> Key:
        """What is compared, with what this router knows to be in flight."""
        return self.key(self.in_flight)

    @property
    def corrected(self) -> float:
        """The figure with what is in flight. Of an unknown one, only what is in flight."""
        return self.order[1]


@dataclass(frozen=True, slots=True)
class Rejected:
    """An SFU that was not chosen for a reason of its own."""

    sfu: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementDecision:
    """Where a player was placed, and why."""

    chosen: str | None
    reason: str
    """A `router.core.assignment.PlacementReason`."""
    candidates: tuple[Standing, ...] = ()
    """The first of those that were eligible, best first."""
    rejected: tuple[Rejected, ...] = ()
    """Some of those that were not, each with its reason."""
    kind: str = ""
    sort_by: str = ""
    limit_ignored: bool = False
    room_had: str = ""
    """The SFU that the room had before, as far as this router knew."""
