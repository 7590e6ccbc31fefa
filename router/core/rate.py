"""How many messages a connection may send (docs/protocol.md): a bucket of tokens that refills."""

from __future__ import annotations

MESSAGES_PER_S = 50.0
BURST = 100.0


class Bucket:
    """Allows `MESSAGES_PER_S` on average and `BURST` at once."""

    __slots__ = ("_at", "_left")

    def __init__(self, *, now: float) -> None:
        self._left = BURST
        self._at = now

    def take(self, *, now: float) -> bool:
        """One message; false when there were too many."""
        self._left = min(BURST, self._left + (now - self._at) * MESSAGES_PER_S)
        self._at = now
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True
