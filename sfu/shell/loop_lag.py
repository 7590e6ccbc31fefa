"""How late the event loop is: what signalling, handshakes and drains wait for when it is busy (field report 65)."""

from __future__ import annotations

import asyncio
import time

LOOK_EVERY_S = 0.1
"""Ten timers between two samples catch a stall of 0.1 s, and their cost is not measurable."""


class LoopLag:
    """Needs a running loop. `stop` ends it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._worst_s = 0.0
        self._due, self._timer = self._arm()

    def take(self) -> float:
        """The longest that a timer was late since the last call [s]; a timer that is overdue now counts as well."""
        worst_s = max(self._worst_s, time.monotonic() - self._due)
        self._worst_s = 0.0
        return max(0.0, worst_s)

    def stop(self) -> None:
        """Stop measuring."""
        self._timer.cancel()

    def _arm(self) -> tuple[float, asyncio.TimerHandle]:
        # Not the loop's own clock: uvloop's stands still while it is busy.
        return time.monotonic() + LOOK_EVERY_S, self._loop.call_later(LOOK_EVERY_S, self._look)

    def _look(self) -> None:
        self._worst_s = max(self._worst_s, time.monotonic() - self._due)
        self._due, self._timer = self._arm()
