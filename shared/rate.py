"""How fast a peer may ask for things: a token bucket, and the bounds of docs/protocol.md on websocket messages."""

from __future__ import annotations

MESSAGES_PER_S = 50.0
MESSAGE_BURST = 100.0


class TokenBucket:
    """Allows `per_s` on average and `burst` at once."""

    __slots__ = ("_at", "_burst", "_left", "_per_s")

    def __init__(self, *, now: float, per_s: float = MESSAGES_PER_S, burst: float = MESSAGE_BURST) -> None:
        """Full at `now`, which is monotonic seconds here as in `take`."""
        self._per_s = per_s
        self._burst = burst
        self._left = burst
        self._at = now

    def take(self, cost: float = 1.0, *, now: float) -> bool:
        """Take `cost` tokens; False, and none is taken, when there are fewer."""
        self._left = min(self._burst, self._left + (now - self._at) * self._per_s)
        self._at = now
        if self._left < cost:
            return False
        self._left -= cost
        return True
