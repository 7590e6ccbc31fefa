"""How many messages a connection may send (docs/protocol.md): a bucket of tokens that refills."""

from __future__ import annotations

MESSAGES_PER_S = 50.0
BURST = 100.0


class Bucket:
    """Allows `per_s` on average and `burst` at once."""

    __slots__ = ("_at", "_burst", "_left", "_per_s")

    def __init__(self, *, now: float, per_s: float = MESSAGES_PER_S, burst: float = BURST) -> None:
        self._per_s = per_s
        self._burst = burst
        self._left = burst
        self._at = now

    def take(self, *, now: float) -> bool:
        """One message; false when there were too many."""
        self._left = min(self._burst, self._left + (now - self._at) * self._per_s)
        self._at = now
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True
