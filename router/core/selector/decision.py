"""What a choice of SFU is made of and what it came to; the same object feeds log line, metric and API (P5)."""

from __future__ import annotations

from dataclasses import dataclass

from shared.records import LoadParts, SfuState


@dataclass(frozen=True, slots=True)
class Candidate:
    """A placeable SFU."""

    sfu: str
    state: SfuState

    @property
    def parts(self) -> LoadParts:
        return self.state.load_parts


@dataclass(frozen=True, slots=True)
class Rejected:
    """An SFU that was not chosen for a reason of its own."""

    sfu: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordering:
    """Every placeable SFU, best first.

    Those above a limit come last: they take a room only when nobody else can, or when it is theirs already (P2).
    """

    order: tuple[str, ...]
    over_limit: tuple[Rejected, ...] = ()
    limit_ignored: bool = False
    """The limit left nobody whose figures are known, so it was ignored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Where a player was placed, and why."""

    chosen: str | None
    reason: str
    """A `router.core.assignment.Reason`."""
    order: tuple[str, ...] = ()
    """Who was eligible, best first."""
    rejected: tuple[Rejected, ...] = ()
    kind: str = ""
    sort_by: str = ""
    limit_ignored: bool = False
