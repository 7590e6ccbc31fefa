"""What a bad network does to the datagrams of one direction: loss, delay, jitter, reordering, duplicates, a rate limit.

Every decision comes from a seeded random source, and the same number of draws is made for each datagram: the one that
is lost is lost whatever else is set.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from shared.errors import BadSetting

OVERHEAD_BYTES = 28
"""IPv4 and UDP headers, which a link's rate carries too."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Impairment:
    """What happens to the datagrams of one direction; the default is a perfect network."""

    loss: float = 0.0
    """Share lost at random [0..1]."""
    delay_s: float = 0.0
    """Delay of every datagram."""
    jitter_s: float = 0.0
    """Further delay, even from 0 to this."""
    in_order: bool = False
    """Jitter holds back those behind as well, as a queue does; otherwise they overtake."""
    reorder: float = 0.0
    """Share held back by `reorder_s`, so that those behind overtake even with `in_order` [0..1]."""
    reorder_s: float = 0.01
    duplicate: float = 0.0
    """Share that arrives twice [0..1]."""
    rate_bps: float = 0.0
    """Rate of the link, headers included; 0: without limit."""
    queue_s: float = 0.2
    """Datagrams that would wait longer than this for their turn on the link are dropped."""

    def check(self) -> Impairment:
        """Itself. Raises `BadSetting` when it can't be."""
        for name in ("loss", "reorder", "duplicate"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise BadSetting(setting=name, detail="is a share; give a number from 0 to 1")
        for name in ("delay_s", "jitter_s", "reorder_s", "rate_bps", "queue_s"):
            if not 0.0 <= getattr(self, name) < math.inf:
                raise BadSetting(setting=name, detail="give a number of at least 0")
        return self


@dataclass(slots=True)
class PathCounts:
    """What has become of the datagrams of one direction."""

    taken: int = 0
    lost: int = 0
    overflowed: int = 0
    """Dropped for a full queue before the link."""
    duplicated: int = 0
    overtook: int = 0
    """Came out before one that went in earlier."""

    @property
    def dropped(self) -> int:
        return self.lost + self.overflowed


class ImpairedPath:
    """One direction of a path: ask `take` about each datagram in the order in which they go in."""

    def __init__(self, impairment: Impairment, *, rng: random.Random) -> None:
        self.impairment = impairment.check()
        self.counts = PathCounts()
        self._rng = rng
        self._link_free_at = 0.0
        self._in_order_out = 0.0
        """Nothing that keeps order comes out before this."""
        self._latest_out = 0.0

    def take(self, size: int, *, now: float) -> tuple[float, ...]:
        """When each copy of a datagram of `size` bytes comes out [seconds on the clock of `now`]; none when lost."""
        rules, counts = self.impairment, self.counts
        lost, held, twice, jitter, second = (self._rng.random() for _ in range(5))
        counts.taken += 1
        sent = self._transmit(size, now)
        if sent is None:
            counts.overflowed += 1
            return ()
        if lost < rules.loss:
            counts.lost += 1
            return ()
        base = sent + rules.delay_s
        out = base + jitter * rules.jitter_s
        if rules.in_order:
            out = self._in_order_out = max(out, self._in_order_out)
        if held < rules.reorder:
            out += rules.reorder_s
        counts.overtook += out < self._latest_out
        self._latest_out = max(self._latest_out, out)
        if twice >= rules.duplicate:
            return (out,)
        counts.duplicated += 1
        return (out, max(out, base + second * rules.jitter_s))

    def _transmit(self, size: int, now: float) -> float | None:
        """When the link has sent it; None when its queue is full."""
        if not self.impairment.rate_bps:
            return now
        begin = max(now, self._link_free_at)
        if begin - now > self.impairment.queue_s:
            return None
        self._link_free_at = begin + 8 * (size + OVERHEAD_BYTES) / self.impairment.rate_bps
        return self._link_free_at
