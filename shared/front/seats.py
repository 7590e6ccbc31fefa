"""Who may hold one of a port's connections: bounded in all and per address, those that have shown something first.

A connection *waits* until it has shown a good token (websockets) or sent a whole request (HTTP); from then on it is
*held* and loses its seat to no other. Where seats are short, a newcomer takes that of one that waits: of the address
that has most of them, or of its own address when that is what is full. Where it can't, it gets a *narrow* seat, which
is good for health and metrics and for being told no.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

SETTLED_S = 1.0
"""One that has waited for so long had its chance, and gives way to a newcomer of its own address. A slow phone's first
message needs three round trips of 0.2 s; without this bound a crowd of honest players would only cut each other off."""
FAIR_LEAD = 1
"""An address that has more waiting than a newcomer's and so many gives a seat up, however fresh it is."""


class Short(StrEnum):
    """What is used up; the label of the metric."""

    ADDRESS = "address"
    """Connections of the address."""
    ADDRESS_WAITING = "address-waiting"
    """Connections of the address that have shown nothing."""
    FULL = "full"
    """Connections."""
    WAITING = "waiting"
    """Connections that have shown nothing."""
    NARROW = "narrow"
    """Narrow seats: answers are slower than connections come."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SeatBounds:
    """How many seats there are."""

    most: int
    """In all, narrow ones aside."""
    per_address: int
    """Of one address."""
    waiting: int
    """That have shown nothing, in all."""
    waiting_per_address: int
    """That have shown nothing, of one address."""
    narrow: int = 32
    """Further ones that only hear that there is no seat, or ask for health."""


@dataclass(slots=True, eq=False)
class Seat:
    """One connection's."""

    address: str
    """Its source, as `shared.front.address` names it."""
    since: float
    """When it began to wait [monotonic seconds]."""
    counted: bool
    """Counts towards its address' bounds; false for a proxy, which stands for many."""
    held: bool = False
    narrow: bool = False


@dataclass(frozen=True, slots=True)
class Seating:
    """The answer to a newcomer."""

    seat: Seat | None
    """None: not even a narrow one."""
    evicted: Seat | None = None
    """Has lost its seat, which is released already; close its connection."""
    short: Short | None = None
    """What was used up."""


@dataclass(slots=True)
class _Address:
    all: int = 0
    waiting: dict[Seat, None] = field(default_factory=dict)
    """In the order in which they began to wait."""


class Seats:
    """The seats of one port."""

    def __init__(self, bounds: SeatBounds) -> None:
        self._bounds = bounds
        self._addresses: dict[str, _Address] = {}
        self._waiting_at: dict[str, _Address] = {}
        """Those of them with a connection that waits: few, even of a port that is full."""
        self._narrow: dict[Seat, None] = {}
        self.taken = 0
        """Seats that are taken, narrow ones aside."""
        self.waiting = 0
        """Those of them that have shown nothing."""

    @property
    def narrow(self) -> int:
        """Narrow seats that are taken."""
        return len(self._narrow)

    def take(self, address: str, *, counted: bool, now: float, silent: Callable[[Seat], bool]) -> Seating:
        """A seat for a newcomer. `silent` says of a seat whether its peer has sent no whole request: only such a narrow
        seat is taken away, since a request that has come is answered at once."""
        seat = Seat(address, now, counted)
        short = self._short(seat)
        evicted = self._evict(short, seat, now) if short else None
        if short is None or evicted is not None:
            self._add(seat)
            return Seating(seat, evicted, short)
        seat.narrow = True
        if len(self._narrow) >= self._bounds.narrow:
            evicted = self._silent_narrow(silent)
            if evicted is None:
                return Seating(None, None, Short.NARROW)
            self.release(evicted)
        self._narrow[seat] = None
        return Seating(seat, evicted, short)

    def move(self, seat: Seat, address: str, *, now: float) -> Seating:
        """A proxy has named the address behind it. `short` without `evicted`: there is no seat for that address, and
        the seat is where it was."""
        if seat.narrow or (address == seat.address and seat.counted):
            return Seating(seat)
        moved = Seat(address, seat.since, counted=True)
        bounds, of = self._bounds, self._addresses.get(address, _Address())
        short = Short.ADDRESS if of.all >= bounds.per_address else None
        if short is None and len(of.waiting) >= bounds.waiting_per_address:
            short = Short.ADDRESS_WAITING
        evicted = self._evict(short, moved, now) if short else None
        if short is not None and evicted is None:
            return Seating(seat, None, short)
        self._remove(seat)
        seat.address, seat.counted = address, True
        self._add(seat)
        return Seating(seat, evicted, short)

    def hold(self, seat: Seat) -> None:
        """It has shown a token, or sent a request: it keeps its seat."""
        if not seat.held and not seat.narrow:
            self._end_wait(seat)
        seat.held = True

    def rest(self, seat: Seat, *, now: float) -> None:
        """Its request is answered: it waits again."""
        if seat.held and not seat.narrow:
            self._begin_wait(seat)
        seat.held, seat.since = False, now

    def release(self, seat: Seat) -> None:
        """The connection has ended; once each."""
        if seat.narrow:
            del self._narrow[seat]
        else:
            self._remove(seat)

    def _add(self, seat: Seat) -> None:
        of = self._addresses.setdefault(seat.address, _Address())
        of.all += 1
        self.taken += 1
        if not seat.held:
            self._begin_wait(seat)

    def _remove(self, seat: Seat) -> None:
        of = self._addresses[seat.address]
        of.all -= 1
        self.taken -= 1
        if not seat.held:
            self._end_wait(seat)
        if not of.all:
            del self._addresses[seat.address]

    def _begin_wait(self, seat: Seat) -> None:
        of = self._waiting_at[seat.address] = self._addresses[seat.address]
        of.waiting[seat] = None
        self.waiting += 1

    def _end_wait(self, seat: Seat) -> None:
        of = self._waiting_at[seat.address]
        del of.waiting[seat]
        self.waiting -= 1
        if not of.waiting:
            del self._waiting_at[seat.address]

    def _short(self, seat: Seat) -> Short | None:
        bounds, of = self._bounds, self._addresses.get(seat.address, _Address())
        if seat.counted and of.all >= bounds.per_address:
            return Short.ADDRESS
        if seat.counted and len(of.waiting) >= bounds.waiting_per_address:
            return Short.ADDRESS_WAITING
        if self.taken >= bounds.most:
            return Short.FULL
        return Short.WAITING if self.waiting >= bounds.waiting else None

    def _evict(self, short: Short, newcomer: Seat, now: float) -> Seat | None:
        """The seat that makes room, released; None when each has a better claim than a newcomer."""
        of = self._addresses.get(newcomer.address, _Address())
        mine = len(of.waiting)
        if short in (Short.FULL, Short.WAITING):
            of = max(self._waiting_at.values(), key=lambda each: (len(each.waiting), -_oldest(each)), default=of)
        if not of.waiting:
            return None
        victim = next(iter(of.waiting))
        if now - victim.since < SETTLED_S and len(of.waiting) <= mine + FAIR_LEAD:
            return None
        self._remove(victim)
        return victim

    def _silent_narrow(self, silent: Callable[[Seat], bool]) -> Seat | None:
        """The oldest silent one of the address that has most of them."""
        count = Counter(seat.address for seat in self._narrow)
        for seat in sorted(self._narrow, key=lambda each: -count[each.address]):
            if not seat.held and silent(seat):
                return seat
        return None


def _oldest(of: _Address) -> float:
    return next(iter(of.waiting)).since
