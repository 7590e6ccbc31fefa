"""What a frame of a player costs of its `TokenBucket` (docs/protocol.md)."""

from __future__ import annotations

CHARS_A_TOKEN = 8192
"""A frame costs one token and one more for each of these: reading a long description takes time from everybody."""


def frame_cost(length: int) -> int:
    """Tokens for a frame of `length` characters."""
    return 1 + length // CHARS_A_TOKEN
