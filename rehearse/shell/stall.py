"""How long this machine keeps an idle process waiting: what a gap owes to the machine and not to the fleet."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque

PERIOD_S = 0.01
NOTED_S = 0.02
"""Delays beyond this are kept one by one."""
STEPS = 20
"""What players do after a failure takes about so many turns of some process, each of which may have to wait."""


class StallMeter:
    """Use it as an async context manager; `worst_ms` is the longest delay beyond a sleep of `PERIOD_S`."""

    def __init__(self) -> None:
        self.worst_ms = 0.0
        self.stalls: deque[tuple[float, float]] = deque(maxlen=10_000)
        """End and length of the latest delays [monotonic s, s]."""
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> StallMeter:
        self._task = asyncio.create_task(self._watch())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    def take(self) -> list[tuple[float, float]]:
        """The delays since the last call."""
        taken, self.stalls = list(self.stalls), deque(maxlen=self.stalls.maxlen)
        return taken

    def forgive(self, bound_s: float) -> float:
        """`bound_s`, with what this machine's stalls may have added [s]: for judging on a machine with other work."""
        return bound_s + STEPS * self.worst_ms / 1000

    async def _watch(self) -> None:
        while True:
            before = time.monotonic()
            await asyncio.sleep(PERIOD_S)
            now = time.monotonic()
            late_s = now - before - PERIOD_S
            self.worst_ms = max(self.worst_ms, late_s * 1000)
            if late_s > NOTED_S:
                self.stalls.append((now, late_s))
