"""What we sent to a peer under transport-wide sequence numbers, and what its feedback says became of it.

The facts a bandwidth estimator needs, and no estimator. The compiled twin is sfu/plane/native/delivery.pxi.
"""

from __future__ import annotations

from typing import NamedTuple

from shared.rtc.rtp import sequence_delta
from shared.rtc.transport_cc import REFERENCE_TICKS, TICKS_PER_S, TransportFeedback

FEWEST = 256
"""Packets remembered at first: half a second of 500 a second."""

MOST = 4096
KEPT_S = 1.0
"""What is younger and not told of yet is not forgotten for a newer packet: round trip and feedback take less."""

RATE_TICKS = TICKS_PER_S // 2
"""Over which the rate of arrival is taken: 0.5 s of the peer's clock."""


class Delivered(NamedTuple):
    """One packet of a feedback."""

    sent_at: float
    """Our monotonic seconds."""
    arrived_at: float | None
    """Seconds of the peer's own clock, in steps of 250 us; None: lost, as far as the peer knows yet."""
    size: int
    """Of the whole RTP packet before SRTP [bytes]."""
    ssrc: int


class _Sent:
    """A packet on its way. `arrived` and `lost` exclude each other; both False: not told of yet."""

    __slots__ = ("arrived", "at", "lost", "size", "ssrc")

    def __init__(self, at: float, size: int, ssrc: int) -> None:
        self.at = at
        self.size = size
        self.ssrc = ssrc
        self.arrived = self.lost = False


class Delivery:
    """`sent` each packet that bears `sequence`, and let feedback be `heard`."""

    __slots__ = (
        "_first",
        "_next",
        "_rate_bytes",
        "_rate_newest",
        "_rate_start",
        "_reference",
        "_ring",
        "_told",
        "acknowledged",
        "acknowledged_bytes",
        "feedbacks",
        "lost",
        "receive_rate_bps",
    )

    def __init__(self) -> None:
        self._ring: list[_Sent | None] = [None] * FEWEST
        self._next = 0
        self._first = 0
        """The oldest packet remembered."""
        self._told = -1
        """The newest packet that a feedback told of."""
        self._reference: int | None = None
        self._rate_start: int | None = None
        self._rate_newest = self._rate_bytes = 0
        self.feedbacks = self.acknowledged = self.acknowledged_bytes = self.lost = 0
        self.receive_rate_bps: int | None = None

    @property
    def packets(self) -> int:
        """Sent so far."""
        return self._next

    @property
    def sequence(self) -> int:
        """The number that the next packet must bear."""
        return self._next & 0xFFFF

    def sent(self, *, size: int, ssrc: int, now: float) -> None:
        """The packet with `sequence` has been sent."""
        oldest = self._next - len(self._ring)
        if oldest >= self._first:
            if self._must_keep(oldest, now):
                self._grow()
            else:
                self._first = oldest + 1
        self._ring[self._next % len(self._ring)] = _Sent(now, size, ssrc)
        self._next += 1

    def _must_keep(self, oldest: int, now: float) -> bool:
        """A peer that gives no feedback needs no memory."""
        if self.feedbacks == 0 or oldest <= self._told or len(self._ring) >= MOST:
            return False
        old = self._ring[oldest % len(self._ring)]
        return old is not None and now - old.at < KEPT_S

    def _grow(self) -> None:
        old = self._ring
        self._ring = [None] * (2 * len(old))
        for index in range(self._first, self._next):
            self._ring[index % len(self._ring)] = old[index % len(old)]

    def heard(self, feedback: TransportFeedback) -> list[Delivered]:
        """Take a feedback; returns what is new in it, in the order of the sequence numbers.

        Each packet is told lost at most once, and arrived at most once, which takes an earlier loss back. A feedback
        that comes after a newer one tells only arrivals.
        """
        self.feedbacks += 1
        start = self._ticks_of(feedback.reference)
        newest = self._next - 1
        base = newest + sequence_delta(feedback.base, newest & 0xFFFF)
        news: list[Delivered] = []
        for index, ticks in enumerate(feedback.arrivals, base):
            if not self._first <= index <= newest:
                continue
            packet = self._ring[index % len(self._ring)]
            assert packet is not None
            if ticks is not None:
                if not packet.arrived:
                    self._arrived(packet, start + ticks)
                    news.append(Delivered(packet.at, (start + ticks) / TICKS_PER_S, packet.size, packet.ssrc))
            elif index > self._told:
                packet.lost = True
                self.lost += 1
                news.append(Delivered(packet.at, None, packet.size, packet.ssrc))
        self._told = max(self._told, min(base + len(feedback.arrivals) - 1, newest))
        self._take_rate()
        return news

    def _ticks_of(self, reference: int) -> int:
        """The reference time without its wrap, which comes every 12 days."""
        if self._reference is not None:
            ahead = ((reference - self._reference + 0x800000) & 0xFFFFFF) - 0x800000
            reference = self._reference + ahead
        self._reference = reference
        return reference * REFERENCE_TICKS

    def _arrived(self, packet: _Sent, ticks: int) -> None:
        self.lost -= packet.lost
        packet.arrived, packet.lost = True, False
        self.acknowledged += 1
        self.acknowledged_bytes += packet.size
        if self._rate_start is None or ticks < self._rate_start:
            # What has arrived by the beginning of the interval is no part of it.
            self._rate_start = self._rate_newest = ticks
            self._rate_bytes = 0
        else:
            self._rate_newest = max(self._rate_newest, ticks)
            self._rate_bytes += packet.size

    def _take_rate(self) -> None:
        if self._rate_start is None or self._rate_newest - self._rate_start < RATE_TICKS:
            return
        span = self._rate_newest - self._rate_start
        self.receive_rate_bps = self._rate_bytes * 8 * TICKS_PER_S // span
        self._rate_start, self._rate_bytes = self._rate_newest, 0
