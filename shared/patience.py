"""Time that a process knows it has slept through, which it must not hold against others.

A process that gets no CPU for ten seconds finds, when it runs again, that it has heard nothing for ten seconds: of
SFUs that report each second, of players that are well. All of it waits in its sockets. So a process that calls another
dead by its silence measures the silence by time in which it could have listened.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from websockets.asyncio.client import ClientConnection
from websockets.asyncio.connection import Connection
from websockets.asyncio.server import ServerConnection
from websockets.frames import CloseCode

STALL_S = 1.0
"""Being later than this is a stall. What is shorter is a busy loop, for which time-outs of seconds have room."""
LOOK_EVERY_S = 0.25


def stalled_s(late_s: float) -> float:
    """The time to grant to others, of a timer that was so late [s]."""
    return late_s if late_s > STALL_S else 0.0


class PatientClock:
    """Monotonic seconds without those in which this process stood still; call it to read it.

    Call `tick` every `period_s`. Until the first tick it is an ordinary clock.
    """

    def __init__(self, *, period_s: float = LOOK_EVERY_S, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._period_s = period_s
        self._due: float | None = None
        self._stood_s = 0.0

    def __call__(self) -> float:
        now = self._clock()
        return (now if self._due is None else min(now, self._due + STALL_S)) - self._stood_s

    def tick(self) -> float:
        """The loop turns; how late this tick was [s]."""
        now = self._clock()
        late_s = 0.0 if self._due is None else max(0.0, now - self._due)
        if stalled := stalled_s(late_s):
            self._stood_s += stalled - STALL_S  # so that reading it never goes back
        self._due = now + self._period_s
        return late_s


@asynccontextmanager
async def patient_timeout(wait_s: float) -> AsyncIterator[None]:
    """As `asyncio.timeout`, but what this process stands still meanwhile is added. Raises `TimeoutError`."""
    async with asyncio.timeout(wait_s) as limit:
        # Armed after the limit and due before it: after a stall it is the first of the two to run.
        extension = _Extension(limit)
        try:
            yield
        finally:
            extension.stop()


class _Extension:
    """Looks at the clock often, and puts a limit off by what the loop was late."""

    def __init__(self, limit: asyncio.Timeout) -> None:
        self._limit = limit
        self._loop = asyncio.get_running_loop()
        self._arm()

    def stop(self) -> None:
        self._timer.cancel()

    def _arm(self) -> None:
        # Not the loop's own clock: uvloop's stands still while it is busy.
        self._due = time.monotonic() + LOOK_EVERY_S
        self._timer = self._loop.call_later(LOOK_EVERY_S, self._look)

    def _look(self) -> None:
        when, stalled = self._limit.when(), stalled_s(time.monotonic() - self._due)
        if when is not None and stalled and not self._limit.expired():
            self._limit.reschedule(when + stalled)
        self._arm()


class _PatientPings(Connection):
    """A websocket whose pings wait longer for an answer when this process stood still."""

    async def keepalive(self) -> None:
        """Ping at intervals, and fail the connection when a pong is overdue; instead of the library's own."""
        assert self.ping_interval is not None
        while True:
            await asyncio.sleep(self.ping_interval)
            pong = await self.ping()
            if self.ping_timeout is None:
                continue
            try:
                async with patient_timeout(self.ping_timeout):
                    await pong
            except TimeoutError:
                async with self.send_context():
                    self.protocol.fail(CloseCode.INTERNAL_ERROR, "keepalive ping timeout")
                return


class PatientClient(_PatientPings, ClientConnection):
    """Give it to `connect` as `create_connection`."""


class PatientServer(_PatientPings, ServerConnection):
    """Give it to `serve` as `create_connection`."""
