"""The ladder: the rules that put an SFU behind others whatever its figure says, each of them a digit of its rank.

A rank is the sum of the digits that hold for an SFU, so that the smaller rank goes first and a rule counts more than
all those below it. What it is compared with is `shared.placing.Offer.key`, here and in Redis.
"""

from __future__ import annotations

from dataclasses import dataclass

from shared.placing import OTHER, TOO_FAST
from shared.records import SfuState

OTHER_VERSION = OTHER << 1
"""Not of the release that the room is to stay on."""
OTHER_CELL = OTHER << 2
"""Not of the cell that the player prefers."""
ROLLED_NEXT = OTHER << 3
"""Still to be rolled, while its cell has an SFU that is not (`router.core.rolling`)."""
UNKNOWN = OTHER << 4
"""Its figure is not known: unknown is not zero (invariant 4)."""
COLD = OTHER << 5
"""Not warmed up (A5)."""
LIMIT_UNKNOWN = TOO_FAST << 1
"""Not known to be within the limit of the kind."""
OVER_LIMIT = TOO_FAST << 2
"""Above that limit."""
FAILING = TOO_FAST << 3
"""Connections to it fail for many: after all others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preference:
    """What one request would like; no player is refused an SFU for it."""

    cell: str = ""
    """SFUs of this cell first; empty: any."""
    version: str = ""
    """Among those, SFUs of this release first; empty: any."""

    def missed(self, state: SfuState) -> int:
        """The digits of the wishes that an SFU does not meet."""
        other_cell = OTHER_CELL if self.cell and state.cell != self.cell else 0
        return other_cell | (OTHER_VERSION if self.version and state.version != self.version else 0)


NO_PREFERENCE = Preference()


def why_behind(rank: int, *, kind: str, sort_by: str) -> str:
    """The rule that puts an SFU of this rank furthest behind, in a word; empty when only its figure counts."""
    if rank <= OTHER:
        return ""
    words = (
        (FAILING, "failing-connections"),
        (OVER_LIMIT, f"{kind}-over-limit"),
        (LIMIT_UNKNOWN, f"{kind}-unknown"),
        (TOO_FAST, "joins-too-fast"),
        (COLD, "not-warmed-up"),
        (UNKNOWN, f"{sort_by}-unknown"),
        (ROLLED_NEXT, "rolled-next"),
        (OTHER_CELL, "other-cell"),
        (OTHER_VERSION, "other-version"),
    )
    return next(word for digit, word in words if rank & digit)
