"""Which transport-wide sequence numbers of a peer arrived when, and what its next feedback says of them.

draft-holmer-rmcat-transport-wide-cc-extensions-01; the compiled twin is sfu/plane/native/arrivals.pxi.
"""

from __future__ import annotations

from dataclasses import dataclass

from shared.rtc.rtp import sequence_delta
from shared.rtc.transport_cc import TICKS_PER_S, delta_fits

WINDOW = 2048
"""Sequence numbers remembered: 0.2 s of 10,000 packets a second, and as far as a late packet may be late."""

LATEST_S = 0.1
"""From a packet's arrival to the feedback that tells of it: what senders' estimators expect at the most."""

SOON_S = 0.05
"""The same while many packets come: at the start of a stream that is what a sender's probing waits for."""

MANY = 20
"""Packets waiting that are many: 400 a second."""

MAX_RECEIVED = 256
"""Arrivals in one feedback: with the most chunks that WINDOW can need it fits one datagram."""


@dataclass(frozen=True, slots=True)
class ArrivalReport:
    """What one feedback packet is to say: `arrivals` in ticks of our clock from sequence number `base` on."""

    base: int
    arrivals: tuple[int | None, ...]


class Arrivals:
    """`note` each packet; when one is `due`, `take` what the feedback is to say.

    A packet that comes after it was told lost is told again, with all that came since: a feedback has no holes. Bounded
    by WINDOW whatever the numbers are: one far ahead starts again, one far behind is ignored.
    """

    __slots__ = ("_first_at", "_highest", "_next", "_ticks", "ssrc", "waiting")

    def __init__(self) -> None:
        self._ticks: list[int | None] = [None] * WINDOW
        self._highest: int | None = None
        self._next = 0
        """The first number that the next feedback tells of."""
        self._first_at = 0.0
        self.waiting = 0
        """Packets noted since the last feedback."""
        self.ssrc = 0
        """Of the packet noted last."""

    def note(self, sequence: int, *, arrived: float, ssrc: int, now: float) -> bool:
        """A packet arrived; False for one that is noted already or too old to tell."""
        index = self._place(sequence)
        if index is None or self._ticks[index % WINDOW] is not None:
            return False
        self._ticks[index % WINDOW] = int(arrived * TICKS_PER_S)
        self._next = min(self._next, index)
        if self.waiting == 0:
            self._first_at = now
        self.waiting += 1
        self.ssrc = ssrc
        return True

    def due(self, *, now: float) -> bool:
        """Whether a feedback is to go out now."""
        if self.waiting >= MANY:
            return now >= self._first_at + SOON_S
        return self.waiting > 0 and now >= self._first_at + LATEST_S

    @property
    def deadline(self) -> float | None:
        """When it is due at the latest; None while nothing waits."""
        return self._first_at + LATEST_S if self.waiting else None

    def take(self) -> list[ArrivalReport]:
        """All that waits, in as many feedback packets as it needs."""
        reports: list[ArrivalReport] = []
        while self.waiting and self._highest is not None and self._next <= self._highest:
            reports.append(self._report(self._highest))
        self.waiting = 0
        return reports

    def _place(self, sequence: int) -> int | None:
        """The number without its wrap, in the window, whose newest it may be from now on; None when it is too old."""
        highest = self._highest
        if highest is None:
            return self._begin(0x10000 + sequence)
        index = highest + sequence_delta(sequence, highest & 0xFFFF)
        if index >= highest + WINDOW:
            return self._begin(index)
        if index <= highest - WINDOW:
            return None
        if index > highest:
            for skipped in range(highest + 1, index + 1):
                self._ticks[skipped % WINDOW] = None
            self._highest = index
            self._next = max(self._next, index - WINDOW + 1)
        return index

    def _begin(self, index: int) -> int:
        self._ticks = [None] * WINDOW
        self._highest = self._next = index
        return index

    def _report(self, highest: int) -> ArrivalReport:
        """The next feedback packet: up to the last arrival that it has room for and that fits after the one before."""
        base, end, received = self._next, self._next, 0
        arrivals: list[int | None] = []
        last: int | None = None
        for index in range(base, highest + 1):
            ticks = self._ticks[index % WINDOW]
            if ticks is not None:
                if received == MAX_RECEIVED or (last is not None and not delta_fits(ticks - last)):
                    break
                last, end, received = ticks, index + 1, received + 1
            arrivals.append(ticks)
        self._next = end
        return ArrivalReport(base & 0xFFFF, tuple(arrivals[: end - base]))
