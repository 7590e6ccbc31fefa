"""Which SFUs go last because a roll will replace them next: a player sent there would soon have to move again.

The rule holds in a cell only while that cell has an SFU that is not to be rolled, has warmed up, and is not full; for
an SFU that is full itself, also while those are full. Else it would send players to another part of the world, or all
of them onto the first replacement.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from shared.records import SfuState

FULL = 0.85
"""Load [share of the ceiling] from which an SFU is no longer somewhere to go instead: the CPU share at which a node
counts as full (A1)."""

Place = tuple[str, bool]
"""An SFU's cell, and whether it has room."""


class Rolling:
    """The SFUs that are still to be rolled, and the cells that have others."""

    def __init__(self) -> None:
        self._next: frozenset[str] = frozenset()
        self._warm: dict[str, Place] = {}
        """Each SFU that players can be sent to."""
        self._others: Counter[Place] = Counter()
        """How many of them are not to be rolled."""

    def told(self, sfus: frozenset[str]) -> list[str]:
        """All that are still to be rolled now; the SFUs whose rank may have changed."""
        if sfus == self._next:
            return []
        touched = self._next | sfus
        self._next = sfus
        self._others = Counter(place for sfu, place in self._warm.items() if sfu not in sfus)
        return sorted(touched)

    def seen(self, sfu: str, state: SfuState | None) -> Iterable[str]:
        """An SFU's newest state, None while it takes no new work; the others whose rank may have changed."""
        place = (state.cell, has_room(state)) if state is not None and state.warmed_up else None
        before = self._warm.get(sfu)
        if place == before:
            return ()
        if place is None:
            del self._warm[sfu]
        else:
            self._warm[sfu] = place
        if sfu in self._next:
            return ()
        changed = [self._count(each, by) for each, by in ((before, -1), (place, 1)) if each is not None]
        return sorted(self._next) if any(changed) else ()

    def goes_last(self, sfu: str, state: SfuState) -> bool:
        """It is to be rolled, and its cell has an SFU that players can go to instead."""
        if sfu not in self._next:
            return False
        others = self._others
        return others[state.cell, True] > 0 or (others[state.cell, False] > 0 and not has_room(state))

    def _count(self, place: Place, by: int) -> bool:
        """Whether there is a first or no more of these."""
        before = self._others[place]
        self._others[place] = before + by
        return (before > 0) != (before + by > 0)


def has_room(state: SfuState) -> bool:
    """It is known not to be full."""
    return state.load is not None and state.load < FULL
