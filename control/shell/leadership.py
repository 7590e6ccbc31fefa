"""Whether this controller may scale right now: the lease, believed no longer than it lasts (A7)."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from shared.errors import StoreUnavailable
from shared.logs import fields
from shared.store.answers import Term
from shared.store.lease import ScalingLease

ASK_EVERY = 1 / 3
"""Part of the lease after which it is asked for again: two requests may get lost."""
log = logging.getLogger("control")


def lease_clock() -> float:
    """Seconds of a clock that also runs while this process is stopped and, where the system can tell, while the machine
    is suspended: a lease ends meanwhile, and with a clock that stood still its holder would go on believing in it."""
    boot_time = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot_time is None else time.clock_gettime(boot_time)


class Leadership:
    """Asks for the lease for ever. `token` is 0 while another controller leads or no leader is known."""

    def __init__(
        self,
        store: ScalingLease,
        controller: str,
        *,
        lease_s: float,
        clock: Callable[[], float] = lease_clock,
        trouble: Callable[[StoreUnavailable], None] = lambda _: None,
    ) -> None:
        """`trouble` is called for each request that the store could not answer."""
        self._store = store
        self._controller = controller
        self._lease_s = lease_s
        self._clock = clock
        self._trouble = trouble
        self._token = 0
        self._until = 0.0
        self._seen = 0
        self._other = ""

    @property
    def token(self) -> int:
        """The fencing token while the lease certainly lasts, else 0.

        By a clock of our own that never stands still, counted from before the request: in any case Redis ends the lease
        later than this.
        """
        return self._token if self._clock() < self._until else 0

    async def run(self) -> None:
        """Ask in time, for ever."""
        while True:
            await self.ask()
            await asyncio.sleep(self._lease_s * ASK_EVERY)

    async def ask(self) -> None:
        """Take or renew the lease; during an outage it stays as it is and ends in time."""
        asked = self._clock()
        try:
            term = await self._store.take_lease(
                self._controller, token=self._token, lease_s=self._lease_s, seen=self._seen
            )
        except StoreUnavailable as error:
            self._trouble(error)
            return
        self._seen = max(self._seen, term.leader.token)
        if term.mine:
            self._mine(term, asked)
        else:
            self._theirs(term)

    def lost(self) -> None:
        """The store has refused a write: another controller leads, whatever the clock says."""
        self._token = 0

    async def release(self) -> None:
        """Give the lease back, so that the next leader need not wait for its end."""
        token, self._token = self._token, 0
        if token:
            try:
                await self._store.release_lease(self._controller, token)
            except StoreUnavailable:
                log.warning("[scale] the lease could not be given back; it will expire")

    def _mine(self, term: Term, asked: float) -> None:
        if term.leader.token != self._token:
            log.info("[scale] leading %s", fields(controller=self._controller, token=term.leader.token))
        self._token, self._until, self._other = term.leader.token, asked + self._lease_s, ""

    def _theirs(self, term: Term) -> None:
        if self._token:
            log.warning("[scale] no longer leading %s", fields(token=self._token, leader=term.leader.controller))
        if term.leader.controller != self._other:
            self._other = term.leader.controller
            log.info("[scale] standing by %s", fields(leader=self._other, token=term.leader.token))
        self._token = 0
