"""Things to do at a time, for a caller that brings the time: a heap of callbacks."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable

Callback = Callable[[float], float | None]
"""Called with `now`; returns when it wants to be called again, or None."""


class Timers:
    """A callback that belongs to something closed returns None; nothing needs cancelling."""

    __slots__ = ("_heap", "_order")

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Callback]] = []
        self._order = itertools.count()

    def add(self, when: float, callback: Callback) -> None:
        heapq.heappush(self._heap, (when, next(self._order), callback))

    def next_deadline(self) -> float | None:
        return self._heap[0][0] if self._heap else None

    def run(self, now: float) -> None:
        """Call everything due by `now`, each at most once."""
        due = []
        while self._heap and self._heap[0][0] <= now:
            due.append(heapq.heappop(self._heap)[2])
        for callback in due:
            again = callback(now)
            if again is not None:
                self.add(again, callback)
