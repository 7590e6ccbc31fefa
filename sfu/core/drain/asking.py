"""Whom to ask to move, and when, once a drain is past `drain_max` (D7): a few at a time, jittered, bounded in rate."""

from __future__ import annotations

import math
import random

BATCH = 10
"""Players asked at once: ten movers a node, then a pause (jicofo's rebalancing)."""
MIN_PAUSE_S = 1.0
"""However short the tail and full the SFU: no more than ten players a second."""
MAX_PAUSE_S = 30.0
ASK_AGAIN_S = 60.0
"""A player that was asked and is still here is asked again: the message may have met a broken websocket."""


class Asking:
    """The pace of one drain's asking. Times are monotonic seconds."""

    def __init__(self, *, players: int, tail_s: float, ends_at: float, now: float, rng: random.Random) -> None:
        """`tail_s` is the time to spread the asking over; no player is given longer than until `ends_at`."""
        batches = math.ceil(players / BATCH) or 1
        # The first half of the tail is for asking, the second for those whose move fails at first.
        self._pause_s = min(MAX_PAUSE_S, max(MIN_PAUSE_S, tail_s / 2 / batches))
        self._ends_at = ends_at
        self._rng = rng
        self._asked_at: dict[str, float] = {}
        self.next_at = now
        """When the next batch is due."""

    @property
    def asked(self) -> int:
        """How many players have been asked so far."""
        return len(self._asked_at)

    def batch(self, players: frozenset[str], *, now: float) -> tuple[tuple[str, ...], float]:
        """The players to ask now, none before `next_at`, and the seconds within which each is to move.

        Those never asked come first, in random order, then those asked longest ago.
        """
        if now < self.next_at:
            return (), 0.0
        pause_s = self._pause_s * self._rng.uniform(1.0, 1.25)
        self.next_at = now + pause_s
        waiting = sorted(player for player in players if now - self._asked(player) >= ASK_AGAIN_S)
        self._rng.shuffle(waiting)
        waiting.sort(key=self._asked)
        chosen = tuple(waiting[:BATCH])
        self._asked_at.update(dict.fromkeys(chosen, now))
        return chosen, round(max(0.0, min(pause_s, self._ends_at - now)), 3)

    def _asked(self, player: str) -> float:
        return self._asked_at.get(player, -math.inf)
