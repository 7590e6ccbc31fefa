"""Tokens that have opened a session: they open nothing again, though they have not expired yet."""

from __future__ import annotations

import hashlib
from collections import OrderedDict

MAX_KEPT = 50_000
"""At 120 s a token that is 400 sessions a second; beyond that the oldest are forgotten early."""


class SpentTokens:
    """Digests of spent tokens, kept until they would have expired anyway. Times are monotonic seconds."""

    def __init__(self, *, ttl_s: float) -> None:
        self._ttl_s = ttl_s
        self._spent: OrderedDict[bytes, float] = OrderedDict()

    def spend(self, token: str, *, now: float) -> None:
        """The token has opened a session, or one that it opened is over."""
        self._spent[_digest(token)] = now + self._ttl_s
        while self._spent and (len(self._spent) > MAX_KEPT or next(iter(self._spent.values())) <= now):
            self._spent.popitem(last=False)

    def __contains__(self, token: str) -> bool:
        return _digest(token) in self._spent


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
