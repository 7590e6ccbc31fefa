"""How often one identity may join: a page that reloads for ever, or a token passed around, costs only itself."""

from __future__ import annotations

from shared.rate import TokenBucket

MAX_IDENTITIES = 20_000
"""Whose last minute is remembered: as many as a router has players. The one that joined longest ago is forgotten."""


class JoinPace:
    """Joins of each identity of a room. A join creates a session, a record in Redis, and a placement; a resume none."""

    def __init__(self, *, per_minute: int) -> None:
        self._per_minute = per_minute
        self._buckets: dict[tuple[str, str], TokenBucket] = {}

    def take(self, room: str, identity: str, *, now: float) -> bool:
        """Whether this identity may join once more at `now` [monotonic seconds]."""
        who = room, identity
        bucket = self._buckets.pop(who, None)
        if bucket is None:
            bucket = TokenBucket(now=now, per_s=self._per_minute / 60, burst=self._per_minute)
        self._buckets[who] = bucket
        while len(self._buckets) > MAX_IDENTITIES:
            del self._buckets[next(iter(self._buckets))]
        return bucket.take(now=now)
