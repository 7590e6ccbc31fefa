"""Sends what is due: one heap of deadlines and one timer for all publishers of the process."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from typing import Protocol

SLACK_S = 0.001
"""How much before it is due something may run: the loop counts whole milliseconds and fires up to one early."""


class Paced(Protocol):
    """Something with a next deadline."""

    def run(self, now: float) -> float | None:
        """Do what is due at `now` [monotonic seconds]; the next deadline, or None to be forgotten."""


class Pacer:
    """Runs each `Paced` when it is due, to the millisecond of the event loop's timer."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Paced]] = []
        self._order = itertools.count()
        self._timer: asyncio.TimerHandle | None = None
        self.worst_lag_s = 0.0
        """Longest delay between a deadline and its run: how late this process sends."""
        self.marked_lag_s = 0.0
        """The same since the last `mark`."""

    def add(self, paced: Paced, at: float) -> None:
        """Run it at `at` [monotonic seconds] for the first time."""
        heapq.heappush(self._heap, (at, next(self._order), paced))
        self._arm()

    def mark(self) -> None:
        """Begin to measure again from here."""
        self.marked_lag_s = 0.0

    def stop(self) -> None:
        """Forget everything that is to run."""
        self._heap.clear()
        if self._timer is not None:
            self._timer.cancel()

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        if self._heap:
            wait = max(0.0, self._heap[0][0] - time.monotonic())
            self._timer = asyncio.get_running_loop().call_later(wait, self._fire)

    def _fire(self) -> None:
        self._timer = None
        now = time.monotonic()
        while self._heap and self._heap[0][0] <= now + SLACK_S:
            due, _, paced = heapq.heappop(self._heap)
            self.marked_lag_s = max(self.marked_lag_s, now - due)
            self.worst_lag_s = max(self.worst_lag_s, now - due)
            following = paced.run(now + SLACK_S)
            if following is not None:
                heapq.heappush(self._heap, (following, next(self._order), paced))
        self._arm()
