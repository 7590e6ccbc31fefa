"""One received RTP stream: its report blocks (RFC 3550 section 6.4, appendix A), and what to ask for again."""

from __future__ import annotations

from dataclasses import dataclass, field

from shared.rtc import rtcp
from shared.rtc.rtp import sequence_delta

MAX_MISSING = 64
"""Sequence numbers asked for at most; after a longer hole only a key frame helps."""
RETRY_S = 0.06
"""Between two requests for the same packet: a round trip with room to spare."""
MAX_TRIES = 5


@dataclass(slots=True)
class _Missing:
    tries: int = 0
    asked: float = 0.0


@dataclass(slots=True)
class Reception:
    """Counters of one SSRC. `clock` is its RTP clock rate [Hz]."""

    ssrc: int
    clock: int
    repairable: bool = False
    """Lost packets may be asked for."""
    received: int = 0
    _base: int | None = None
    _highest: int = 0
    """Extended highest sequence number."""
    _jitter: float = 0.0
    _transit: float | None = None
    _reported_expected: int = 0
    _reported_received: int = 0
    _last_sr: int = 0
    _last_sr_at: float = 0.0
    _missing: dict[int, _Missing] = field(default_factory=dict)

    def packet(self, sequence: int, timestamp: int, *, at: float) -> None:
        """Count a packet that arrived at `at` [monotonic seconds]."""
        self.received += 1
        if self._base is None:
            self._base = self._highest = sequence
        elif sequence == (self._highest + 1) & 0xFFFF:
            self._highest += 1
        else:
            ahead = sequence_delta(sequence, self._highest & 0xFFFF)
            if ahead > 0:
                if ahead > 1 and self.repairable:
                    self._note_missing(self._highest + 1, self._highest + ahead)
                self._highest += ahead
            elif self._missing:
                self._missing.pop(sequence, None)
        transit = at * self.clock - timestamp
        if self._transit is not None:
            step = abs(transit - self._transit)
            if step < 10 * self.clock:  # a wrap of the timestamp is no jitter
                self._jitter += (step - self._jitter) / 16.0
        self._transit = transit

    def repaired(self, sequence: int) -> None:
        """A retransmission brought this packet."""
        self._missing.pop(sequence, None)

    def to_ask_for(self, *, now: float) -> list[int]:
        """Sequence numbers to put into a NACK now, in order."""
        due: list[int] = []
        for sequence, missing in list(self._missing.items()):
            if missing.tries >= MAX_TRIES:
                del self._missing[sequence]
            elif missing.tries == 0 or now - missing.asked >= RETRY_S:
                missing.tries, missing.asked = missing.tries + 1, now
                due.append(sequence)
        return due

    @property
    def missing(self) -> bool:
        """Something is being asked for."""
        return bool(self._missing)

    def sender_report(self, ntp: int, *, at: float) -> None:
        """The sender's report came: the next report refers to it."""
        self._last_sr = (ntp >> 16) & 0xFFFFFFFF
        self._last_sr_at = at

    def report(self, *, now: float) -> rtcp.ReportBlock:
        """The report block for the time since the last one."""
        expected = 0 if self._base is None else self._highest - self._base + 1
        lost = expected - self.received
        interval = expected - self._reported_expected
        interval_lost = interval - (self.received - self._reported_received)
        self._reported_expected, self._reported_received = expected, self.received
        fraction = (interval_lost << 8) // interval if interval > 0 and interval_lost > 0 else 0
        delay = int((now - self._last_sr_at) * 65536) if self._last_sr else 0
        return rtcp.ReportBlock(
            ssrc=self.ssrc,
            fraction_lost=min(fraction, 255),
            lost=max(-0x800000, min(lost, 0x7FFFFF)),
            highest=self._highest & 0xFFFFFFFF,
            jitter=int(self._jitter) & 0xFFFFFFFF,
            last_sr=self._last_sr,
            delay_since_sr=delay & 0xFFFFFFFF,
        )

    def _note_missing(self, first: int, end: int) -> None:
        if end - first > MAX_MISSING or len(self._missing) + end - first > MAX_MISSING:
            self._missing.clear()
            return
        for sequence in range(first, end):
            self._missing[sequence & 0xFFFF] = _Missing()
