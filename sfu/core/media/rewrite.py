"""How the numbers of incoming packets become those of one consumer, continuous over switches, pauses, probes (M2).

A consumer's output is a row of spans. Within one, every packet comes from one source and is shifted by the same
amounts, so a packet that comes late, or is asked for again, finds the numbers it had or would have had.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Generic, TypeVar

from shared.rtc.rtp import timestamp_delta

S = TypeVar("S")
"""What a source is to the caller; compared by identity."""

KEPT_SPANS = 32
"""Spans remembered for late packets and NACKs; one more is made by each switch and each dropped padding packet."""

MIN_STEP_S = 0.001
"""Between the last frame of the old layer and the first of the new one, whose capture times may be equal."""

MAX_STEP_SLACK_S = 1.0
"""A sender clock that puts the new layer further than this from where arrival times put it is not believed: a picture a
minute ahead freezes the player (versatica/mediasoup#990)."""


@dataclass(frozen=True, slots=True)
class Shifts:
    """What to add to a packet's numbers, modulo their widths; `sequence` maps extended index to extended index."""

    sequence: int
    timestamp: int
    picture_id: int
    tl0: int


@dataclass(frozen=True, slots=True)
class Span(Generic[S]):
    """From `in_start` of `source` on, the output numbers are the input's plus `shifts`.

    Where `out_start` is one less than that, a packet of our own comes before the first one: its `lead`.
    """

    source: S
    in_start: int
    out_start: int
    shifts: Shifts

    def origin(self, out_index: int) -> int:
        """The input index of an output number; one below `in_start` for the lead."""
        return out_index - self.shifts.sequence


@dataclass(frozen=True, slots=True)
class Last:
    """The newest packet sent: its output numbers; -1 where the codec has none."""

    timestamp: int
    picture_id: int
    tl0: int
    at: float


class SpanMap(Generic[S]):
    """The row of spans of one consumer."""

    __slots__ = ("_spans", "current")

    def __init__(self) -> None:
        self._spans: deque[Span[S]] = deque(maxlen=KEPT_SPANS)
        self.current: Span[S] | None = None

    def begin(self, source: S, in_start: int, out_start: int, shifts: Shifts) -> Span[S]:
        """Open a span; packets of it come out as `out_start` and up."""
        self.current = Span(source, in_start, out_start, shifts)
        self._spans.append(self.current)
        return self.current

    def skip(self, index: int) -> Span[S]:
        """Leave packet `index`, the newest of the current span, out: what follows closes up."""
        assert self.current is not None
        shifts = self.current.shifts
        closer = Shifts(shifts.sequence - 1, shifts.timestamp, shifts.picture_id, shifts.tl0)
        return self.begin(self.current.source, index + 1, index + shifts.sequence, closer)

    def for_late(self, source: S, index: int) -> Span[S] | None:
        """The span that a packet older than the current span's start belongs to; None when it was never wanted.

        Only the current source: once a consumer has switched away, its old layer is of no more use. And no packet of a
        pause, whose numbers have gone to what came after it: two packets under one SRTP index give AES-GCM's key away.
        """
        out_end: int | None = None
        for span in reversed(self._spans):
            if span.source is not source:
                return None
            if span.in_start <= index:
                return span if out_end is None or index + span.shifts.sequence < out_end else None
            out_end = span.out_start
        return None

    def uses(self, source: S) -> bool:
        """Whether what it sent may still be asked for."""
        return any(span.source is source for span in self._spans)

    def locate(self, out_index: int) -> Span[S] | None:
        """The span that an output number belongs to; None when forgotten."""
        for span in reversed(self._spans):
            if span.out_start <= out_index:
                return span
        return None


def switch_timestamp(*, aligned: int | None, last: Last, clock_rate: int, now: float) -> int:
    """The output timestamp of the first packet of a new layer.

    `aligned` is what both layers' sender reports make of it. Without them, or when they disagree with the arrival
    times by more than `MAX_STEP_SLACK_S`, the time since the last packet was sent counts.
    """
    least = max(1, int(MIN_STEP_S * clock_rate))
    by_arrival = max(least, round((now - last.at) * clock_rate))
    step = by_arrival
    if aligned is not None:
        by_reports = timestamp_delta(aligned, last.timestamp)
        if abs(by_reports - by_arrival) <= MAX_STEP_SLACK_S * clock_rate:
            step = max(least, by_reports)
    return (last.timestamp + step) & 0xFFFFFFFF
