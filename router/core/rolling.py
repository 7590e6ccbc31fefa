"""Which SFUs go last because a roll will replace them next: a player sent there would soon have to move again.

The rule holds in a cell only while that cell has an SFU that is not to be rolled, has warmed up, and is not full.
Else it would send players to another part of the world, or all of them onto the first replacement.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from shared.records import SfuState

FULL = 0.85
"""Load [share of the ceiling] from which an SFU is no longer somewhere to go instead: the CPU share at which a node
counts as full (A1)."""


class Rolling:
    """The SFUs that are still to be rolled, and the cells that have others."""

    def __init__(self) -> None:
        self._next: frozenset[str] = frozenset()
        self._able: dict[str, str] = {}
        """SFU that can take players -> its cell."""
        self._cells: Counter[str] = Counter()
        """How many of them each cell has that are not to be rolled."""

    def told(self, sfus: frozenset[str]) -> list[str]:
        """All that are still to be rolled now; the SFUs whose rank may have changed."""
        if sfus == self._next:
            return []
        touched = self._next | sfus
        self._next = sfus
        self._cells = Counter(cell for sfu, cell in self._able.items() if sfu not in sfus)
        return sorted(touched)

    def seen(self, sfu: str, state: SfuState | None) -> Iterable[str]:
        """An SFU's newest state, None while it takes no new work; the others whose rank may have changed."""
        cell = state.cell if state is not None and can_take(state) else None
        before = self._able.get(sfu)
        if cell == before:
            return ()
        if cell is None:
            del self._able[sfu]
        else:
            self._able[sfu] = cell
        if sfu in self._next:
            return ()
        changed = [self._count(each, by) for each, by in ((before, -1), (cell, 1)) if each is not None]
        return sorted(self._next - {sfu}) if any(changed) else ()

    def goes_last(self, sfu: str, cell: str) -> bool:
        """It is to be rolled, and its cell has an SFU that players can go to instead."""
        return sfu in self._next and self._cells[cell] > 0

    def _count(self, cell: str, by: int) -> bool:
        """Whether the cell has got its first or lost its last."""
        before = self._cells[cell]
        self._cells[cell] = before + by
        return (before > 0) != (before + by > 0)


def can_take(state: SfuState) -> bool:
    """It has warmed up, and is known not to be full."""
    return state.warmed_up and state.load is not None and state.load < FULL
