"""The last placements of this router, so that each can be explained (P5): a bounded ring."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass
from itertools import islice

from router.core.selector import Decision

KEPT = 1000
"""Placements remembered; about 1 KiB each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """One placement."""

    at: float
    """Unix seconds, for people."""
    room: str
    identity: str
    cause: str
    """What made the player ask: `join`, `resume`, or the reason of its `request-sfu`."""
    decision: Decision

    def line(self) -> dict[str, object]:
        """The fields of the `[place]` log line."""
        decision = self.decision
        return {
            "room": self.room,
            "player": self.identity,
            "sfu": decision.chosen or "-",
            "reason": decision.reason,
            "cause": self.cause,
            "eligible": ",".join(decision.order[:8]) or "-",
            "rejected": ",".join(f"{r.sfu}:{r.why}" for r in decision.rejected[:8]) or None,
            "selector": f"{decision.kind}/{decision.sort_by}",
        }


class Placements:
    """The ring, and how often each reason decided."""

    def __init__(self) -> None:
        self._ring: deque[Placed] = deque(maxlen=KEPT)
        self.reasons: Counter[str] = Counter()

    def add(self, placed: Placed) -> None:
        """Remember one."""
        self._ring.append(placed)
        self.reasons[placed.decision.reason] += 1

    def last(self, count: int) -> list[Placed]:
        """The newest first."""
        return list(islice(reversed(self._ring), max(0, count)))
