"""What receiver and sender reports are made of: arrival statistics, the publisher's clock, round trips (RFC 3550)."""

from __future__ import annotations

from collections import deque

from shared.rtc.rtcp import ReportBlock
from shared.rtc.rtp import sequence_delta, timestamp_delta

NTP_UNIT = 1 << 32
"""Fractions of a second in a 64-bit NTP time."""

MAX_EXTRAPOLATION_S = 30.0
"""A publisher whose last sender report is older has stopped reporting; its clock is not guessed any further."""

JITTER_SHARE = 1 / 16
"""Of a new difference in the mean (RFC 3550 section 6.4.1)."""

KEPT_REPORTS = 4
"""Sender reports remembered; a receiver echoes the last one or the one before."""

RTT_RISE = 1 / 8
"""Of a larger round trip in the least one, which falls at once and rises slowly."""


class ReceiveStats:
    """Arrival statistics of one SSRC (RFC 3550 appendix A.1, A.3, A.8)."""

    __slots__ = (
        "_base",
        "_expected_prior",
        "_received_prior",
        "_transit",
        "bytes",
        "clock_rate",
        "highest",
        "jitter",
        "last_sr",
        "last_sr_at",
        "received",
        "ssrc",
    )

    def __init__(self, *, ssrc: int, clock_rate: int, sequence: int) -> None:
        self.ssrc = ssrc
        self.clock_rate = clock_rate
        # One cycle up, so that packets older than the first one have positive extended numbers.
        self._base = self.highest = 0x10000 + sequence
        self.received = 0
        self.bytes = 0
        self.jitter = 0.0
        self._transit: float | None = None
        self._expected_prior = self._received_prior = 0
        self.last_sr = 0
        self.last_sr_at = 0.0

    def extend(self, sequence: int) -> int:
        """The extended number of a 16-bit one, relative to the highest seen; changes nothing."""
        return self.highest + sequence_delta(sequence, self.highest & 0xFFFF)

    def count(self, index: int, timestamp: int, size: int, *, now: float) -> None:
        """A packet with extended number `index` arrived; duplicates are not to be counted."""
        self.received += 1
        self.bytes += size
        if index > self.highest:
            self.highest = index
            transit = now * self.clock_rate - timestamp
            if self._transit is not None:
                # Timestamps wrap: only the difference within half their range means anything.
                difference = abs((transit - self._transit + 0x80000000) % 0x100000000 - 0x80000000)
                self.jitter += (difference - self.jitter) * JITTER_SHARE
            self._transit = transit
        elif index < self._base:
            self._base = index

    @property
    def lost(self) -> int:
        """Cumulative loss; may be negative after duplicates."""
        return self.highest - self._base + 1 - self.received

    def block(self, *, now: float) -> ReportBlock:
        """The report block for this stream; starts a new interval."""
        expected = self.highest - self._base + 1
        expected_interval = expected - self._expected_prior
        lost_interval = expected_interval - (self.received - self._received_prior)
        self._expected_prior, self._received_prior = expected, self.received
        fraction = 0
        if expected_interval > 0 and lost_interval > 0:
            fraction = min(255, (lost_interval << 8) // expected_interval)
        return ReportBlock(
            ssrc=self.ssrc,
            fraction_lost=fraction,
            lost=max(-0x800000, min(0x7FFFFF, self.lost)),
            highest=self.highest & 0xFFFFFFFF,
            jitter=int(self.jitter),
            last_sr=self.last_sr,
            delay_since_sr=int((now - self.last_sr_at) * 65536) if self.last_sr else 0,
        )

    def sender_report(self, ntp: int, *, now: float) -> None:
        """The stream's sender reported at NTP time `ntp`."""
        self.last_sr = ntp >> 16 & 0xFFFFFFFF
        self.last_sr_at = now


class SenderClock:
    """The publisher's own pairing of NTP and RTP time for one layer, from its last sender report."""

    __slots__ = ("_at", "_ntp", "_rate", "_timestamp")

    def __init__(self, *, ntp: int, timestamp: int, clock_rate: int, now: float) -> None:
        self._ntp = ntp
        self._timestamp = timestamp
        self._rate = clock_rate
        self._at = now

    def at(self, *, now: float) -> tuple[int, int] | None:
        """`(ntp, timestamp)` of this moment by the publisher's clock; None when its last report is too old.

        Both move on by the same time, so the pairing, which is what lip sync needs, stays exactly the publisher's.
        """
        elapsed = now - self._at
        if elapsed > MAX_EXTRAPOLATION_S:
            return None
        ntp = (self._ntp + int(elapsed * NTP_UNIT)) & 0xFFFFFFFFFFFFFFFF
        return ntp, (self._timestamp + int(elapsed * self._rate)) & 0xFFFFFFFF

    def timestamp_of(self, ntp: int) -> int:
        """The RTP timestamp of an NTP time by this layer's clock."""
        return (self._timestamp + ((ntp - self._ntp) * self._rate + NTP_UNIT // 2) // NTP_UNIT) & 0xFFFFFFFF

    def ntp_of(self, timestamp: int) -> int:
        """The NTP time of an RTP timestamp by this layer's clock."""
        return self._ntp + timestamp_delta(timestamp, self._timestamp) * NTP_UNIT // self._rate


class RoundTrip:
    """The round trip to a receiver from the sender reports it echoes (RFC 3550 section 6.4.1)."""

    __slots__ = ("_sent", "least_s", "rtt_s")

    def __init__(self) -> None:
        self._sent: deque[tuple[int, float]] = deque(maxlen=KEPT_REPORTS)
        self.rtt_s: float | None = None
        """By the last echo; None before the first."""
        self.least_s: float | None = None
        """The path's own, without its jitter: falls with any echo at once, rises slowly."""

    def report_sent(self, ntp: int, *, now: float) -> None:
        self._sent.appendleft((ntp >> 16 & 0xFFFFFFFF, now))

    def echoed(self, last_sr: int, delay_since_sr: int, *, now: float) -> None:
        # A publisher may repeat an NTP time, and ours is made of its: the newest is meant.
        sent_at = next((at for ntp, at in self._sent if ntp == last_sr), None)
        if sent_at is not None:
            self.rtt_s = max(0.0, now - sent_at - delay_since_sr / 65536)
            if self.least_s is None or self.rtt_s < self.least_s:
                self.least_s = self.rtt_s
            else:
                self.least_s += (self.rtt_s - self.least_s) * RTT_RISE
