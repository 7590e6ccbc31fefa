"""The facts of one cordon in progress: who holds the SFU, until when, and which bounds count."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sfu.core.drain.bounds import DrainBounds
from sfu.core.drain.events import CordonOrdered, Lease
from shared.records import Drain, DrainCause
from shared.scaling_records import MOST_LEASE_S


@dataclass(slots=True)
class CordonInForce:
    """Times are monotonic seconds. It is held (no bounds), leased (`lapses_at`), or a drain (`exit_when_empty`)."""

    cause: DrainCause
    by: str
    reason: str
    command: str
    began: float
    exit_when_empty: bool = False
    ask_at: float | None = None
    final_at: float | None = None
    since_at: float | None = None
    lapses_at: float | None = None
    token: int = 0

    @property
    def leased(self) -> bool:
        """It lapses unless it is renewed."""
        return self.lapses_at is not None

    @property
    def next_at(self) -> float:
        """When it ends or lapses, whichever comes first."""
        return min(math.inf if at is None else at for at in (self.final_at, self.lapses_at))

    def owned_by(self, by: str) -> bool:
        """A controller may renew it or take it back: it is leased, or `by` gave it through a router or to an SFU too
        old to know of leases."""
        return not self.exit_when_empty and (self.leased or (by != "" and self.by == by))

    def renew(self, lease: Lease, *, by: str, token: int, now: float) -> None:
        """Hold it for another lease. The deadline for asking stays where the first order put it."""
        self.lapses_at = now + lease.lease_s
        self.by, self.token = by, token
        if self.ask_at is None and lease.drain_max_s is not None:
            self.ask_at = self.began + lease.drain_max_s

    def take_over(self, event: CordonOrdered) -> None:
        """A person's order in place of what was there: no lease, no deadline of a controller's."""
        self.by, self.reason, self.command = event.by, event.reason, event.command
        self.lapses_at, self.token = None, 0
        if not event.exit_when_empty:
            self.ask_at = None

    def bound(self, bounds: DrainBounds, *, now: float) -> None:
        """Make it a drain with bounds that count from now: that is when the clock of the kill starts."""
        self.exit_when_empty = True
        self.lapses_at, self.token = None, 0
        self.final_at = now + bounds.final_after_s
        self.ask_at = min(now + bounds.drain_max_s, math.inf if self.ask_at is None else self.ask_at)

    def facts(self, bounds: DrainBounds, *, asking: bool, now: float) -> Drain:
        """The drain as it goes into `SfuState`. All bounds count from the cordon's beginning."""
        kill_at = None if self.final_at is None else self.final_at + bounds.lead_s
        return Drain(
            cause=self.cause.value,
            by=self.by,
            reason=self.reason,
            command=self.command,
            exit_when_empty=self.exit_when_empty,
            elapsed_s=round(now - self.began, 3),
            drain_max_s=self._since_beginning(self.ask_at),
            grace_s=self._since_beginning(kill_at),
            asking=asking,
            since_at=self.since_at,
            lease_left_s=None if self.lapses_at is None else round(max(0.0, self.lapses_at - now), 3),
            token=self.token,
        )

    def broken_promises(self) -> list[str]:
        """The promises that it breaks, in words."""
        promises = {
            "a drain has both bounds, and nothing else ends": self.exit_when_empty == (self.final_at is not None),
            "a drain asks": not self.exit_when_empty or self.ask_at is not None,
            "a held SFU has no bounds": self.exit_when_empty or self.leased or self.ask_at is None,
            "no drain lapses": not (self.exit_when_empty and self.leased),
            "asks begin before the final sequence": self.final_at is None
            or (self.ask_at is not None and self.ask_at < self.final_at),
        }
        return [promise for promise, kept in promises.items() if not kept]

    def _since_beginning(self, at: float | None) -> float | None:
        return None if at is None else round(at - self.began, 3)


def lease_fault(lease: Lease) -> str:
    """Why a lease can't be granted; empty when it can."""
    if not 0 < lease.lease_s <= MOST_LEASE_S:  # NaN fails as well
        return f"a lease of {lease.lease_s:g} s"
    if lease.drain_max_s is not None and not 0 <= lease.drain_max_s < math.inf:
        return f"a deadline after {lease.drain_max_s:g} s"
    return ""
