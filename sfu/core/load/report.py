"""What an SFU says of itself: its `SfuState`, numbered so that the newest report wins (invariant 2)."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from shared.records import Capacities, Drain, LoadParts, Milestones, SfuState, SfuStatus


@dataclass(frozen=True, kw_only=True, slots=True)
class Figures:
    """The changing part of a report."""

    status: SfuStatus
    drain: Drain | None
    load: float | None
    load_parts: LoadParts
    warmed_up: bool
    players: int
    producers: int
    consumers: int
    milestones: Milestones
    probe_failure: str


class Reporter:
    """Makes the states; each has a greater `(incarnation, revision)` than the one before."""

    def __init__(
        self, *, sfu: str, address: str, version: str, cell: str, capacities: Capacities, started_ms: int
    ) -> None:
        """`started_ms` is the wall clock at start: greater than that of any earlier start, if the clock was right; the
        routers' floor corrects it where it was not."""
        self._base = SfuState(
            address=address, sfu=sfu, version=version, cell=cell, capacities=capacities, incarnation=started_ms
        )
        self.state = self._base
        """The last report."""

    def raise_above(self, floor: int) -> bool:
        """Make the incarnation greater than another boot's; True when it had to grow."""
        if self._base.incarnation > floor:
            return False
        self._base = msgspec.structs.replace(self._base, incarnation=floor + 1)
        self.state = msgspec.structs.replace(self.state, incarnation=floor + 1)
        return True

    def stamp(self, started_at: float | None) -> None:
        """Since when Redis has known this SFU [Unix seconds]."""
        if started_at is not None:
            self._base = msgspec.structs.replace(self._base, started_at=started_at)

    def next(self, figures: Figures) -> SfuState:
        """The next report."""
        self.state = msgspec.structs.replace(
            self._base,
            revision=self.state.revision + 1,
            status=figures.status.value,
            drain=figures.drain,
            load=figures.load,
            load_parts=figures.load_parts,
            warmed_up=figures.warmed_up,
            players=figures.players,
            producers=figures.producers,
            consumers=figures.consumers,
            milestones=figures.milestones,
            probe_failure=figures.probe_failure,
        )
        return self.state
