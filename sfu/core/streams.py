"""Which TCP connections for media are let in, and which must go (RFC 6544, passive side).

A stranger gets five seconds and few places; who has shown an authentic check is bounded with its peer, not with its
address: a whole office may stand behind one.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum

from sfu.core.media.addresses import MAX_ADDRESSES, Address

FIRST_CHECK_WITHIN_S = 5.0
"""Browsers send their first check with the first packet after the connection is made."""

IDLE_S = 30.0
"""Nothing for so long: the connection is dead, or of no use. Browsers check every 2.5 s."""

MAX_STRANGERS = 256
"""Connections without an authentic check: with 5 s for each, 50 joins a second."""

MAX_STRANGERS_OF_ADDRESS = 32
MAX_OF_PEER = MAX_ADDRESSES
"""Connections of one peer: the plane knows no more of its addresses."""

MAX_STRANGER_BYTES = 2 * 1500
"""What a stranger may send before its first check is whole: twice the longest datagram."""

MAX_STREAMS = 4096
"""In all; each is a file."""


class StreamEnd(StrEnum):
    """Why a connection was refused or closed by us."""

    TOO_MANY = "stream-too-many"
    NO_CHECK = "stream-no-check"
    """Its first datagram was no authentic check, or did not come in time."""
    BAD_FRAME = "stream-bad-frame"
    IDLE = "stream-idle"
    EVICTED = "stream-evicted"
    """Its peer made another, and had as many as it may."""


@dataclass(slots=True)
class _Known:
    host: str
    heard_at: float
    peer: int | None = None


def stream_address(host: str, port: int, number: int) -> Address:
    """Names one connection: never the same as an address of UDP, nor as an earlier connection from the same port."""
    return host, port, f"tcp/{number}"


def stream_number(address: Address) -> int | None:
    """The number of the connection; None for an address of UDP."""
    if len(address) < 3 or not address[2].startswith("tcp/"):
        return None
    return int(address[2][4:])


class StreamTable:
    """By number, which is never used again."""

    def __init__(self, *, most: int = MAX_STREAMS) -> None:
        """`most`: in all, fewer than `MAX_STREAMS` when files are short."""
        self._most = most
        self._known: dict[int, _Known] = {}
        self._strangers: Counter[str] = Counter()
        self._last = 0

    def __len__(self) -> int:
        return len(self._known)

    def admit(self, host: str, *, now: float) -> int | StreamEnd:
        """A connection from there: its number, or why it is refused."""
        if (
            len(self._known) >= self._most
            or self._strangers.total() >= MAX_STRANGERS
            or self._strangers[host] >= MAX_STRANGERS_OF_ADDRESS
        ):
            return StreamEnd.TOO_MANY
        self._last += 1
        self._known[self._last] = _Known(host, now)
        self._strangers[host] += 1
        return self._last

    def heard(self, number: int, *, now: float) -> None:
        """A datagram came."""
        if (known := self._known.get(number)) is not None and known.peer is not None:
            known.heard_at = now

    def proved(self, number: int, peer: int, *, now: float) -> int | None:
        """It showed an authentic check of this peer; the connection that must go for it, if any."""
        known = self._known.get(number)
        if known is None or known.peer is not None:
            return None
        self._drop_stranger(known.host)
        known.peer, known.heard_at = peer, now
        others = [other for other in self.of(peer) if other != number]
        if len(others) < MAX_OF_PEER:
            return None
        return min(others, key=lambda other: self._known[other].heard_at)

    def is_stranger(self, number: int) -> bool:
        """It has not shown an authentic check."""
        known = self._known.get(number)
        return known is None or known.peer is None

    def of(self, peer: int) -> list[int]:
        """The connections of a peer."""
        return [number for number, known in self._known.items() if known.peer == peer]

    def forget(self, number: int) -> None:
        """It is closed; safe twice."""
        known = self._known.pop(number, None)
        if known is not None and known.peer is None:
            self._drop_stranger(known.host)

    def due(self, *, now: float) -> list[tuple[int, StreamEnd]]:
        """Those that must go by now."""
        found = []
        for number, known in self._known.items():
            if known.peer is None and now - known.heard_at >= FIRST_CHECK_WITHIN_S:
                found.append((number, StreamEnd.NO_CHECK))
            elif known.peer is not None and now - known.heard_at >= IDLE_S:
                found.append((number, StreamEnd.IDLE))
        return found

    def _drop_stranger(self, host: str) -> None:
        self._strangers[host] -= 1
        if self._strangers[host] <= 0:
            del self._strangers[host]
