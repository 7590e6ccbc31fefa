"""What a choice of SFU is made of and what it came to; the same object feeds log line, metric, history and API (P5)."""

from __future__ import annotations

from dataclasses import dataclass

from shared.records import LoadParts, SfuState


@dataclass(frozen=True, slots=True)
class Candidate:
    """A placeable SFU, with what is known of it beside its own report."""

    sfu: str
    state: SfuState
    in_flight: int = 0
    """Placements that its report can't show yet (P4)."""
    cost: float = 0.0
    """What each of them will add to the figure that sorts, in that figure's unit."""
    failing: bool = False
    """Connections to it fail for many."""
    hot: bool = False
    """Joins reach it faster than the cap."""
    cold: bool = False
    """Has not proved itself with a first packet, and is still being waited for (A5)."""

    @property
    def parts(self) -> LoadParts:
        return self.state.load_parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Preference:
    """What one request would like; nobody is refused for it."""

    cell: str = ""
    """SFUs of this cell first; empty: any."""
    version: str = ""
    """Among those, SFUs of this release first; empty: any."""

    def misses(self, state: SfuState) -> tuple[bool, bool]:
        """Which of the two wishes an SFU does not meet; smaller is better."""
        return (
            bool(self.cell) and state.cell != self.cell,
            bool(self.version) and state.version != self.version,
        )


NO_PREFERENCE = Preference()


@dataclass(frozen=True, slots=True)
class Rejected:
    """An SFU that was not chosen for a reason of its own."""

    sfu: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """One candidate as the choice saw it."""

    sfu: str
    level: int = 0
    """Whoever has a lower level goes first, whatever the figures say."""
    figure: float | None = None
    """What its report says, in the sort's unit; None: don't know."""
    in_flight: int = 0
    """Placements that count beside the report."""
    cost: float = 0.0
    """What each of them adds."""
    passed_over: str = ""
    """Why it stands behind others regardless of its figure; empty: it does not."""
    version: tuple[int, int] = (0, 0)
    """`(incarnation, revision)` of the report."""

    @property
    def corrected(self) -> float:
        """The figure that compares: the report's and what is in flight. Of an unknown one, only what is in flight."""
        return (self.figure or 0.0) + self.in_flight * self.cost


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
    candidates: tuple[Scored, ...] = ()
    """The first of those who were eligible, best first, with their scores."""
    rejected: tuple[Rejected, ...] = ()
    """Some of those who were not, each with its reason."""
    kind: str = ""
    sort_by: str = ""
    limit_ignored: bool = False
    room_had: str = ""
    """The SFU that the room had before, as far as this router knew."""
    preference: Preference = NO_PREFERENCE

    @property
    def order(self) -> tuple[str, ...]:
        """The candidates' ids, best first."""
        return tuple(each.sfu for each in self.candidates)
