"""How fast one connection may send messages (docs/protocol.md): a token bucket in which long frames cost more."""

from __future__ import annotations

RATE_PER_S = 50.0
BURST = 100.0
CHARS_A_TOKEN = 8192
"""A frame costs one token and one more for each of these: reading a long description takes time from everybody."""


class MessageRate:
    """The bucket of one connection."""

    def __init__(self, *, now: float) -> None:
        self._tokens = BURST
        self._at = now

    def allows(self, length: int, *, now: float) -> bool:
        """Take a frame of `length` characters into account; False when the connection is too fast."""
        self._tokens = min(BURST, self._tokens + (now - self._at) * RATE_PER_S)
        self._at = now
        self._tokens -= 1 + length // CHARS_A_TOKEN
        return self._tokens >= 0
