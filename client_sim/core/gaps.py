"""Gaps as a listener meets them: one meter a publication and kind, fed by every copy of it that arrives (D5).

While a publication moves, its packets come twice, from the old SFU and from the new one. Content tells them apart:
each unit (Opus packet or video frame) has a number that is the same in both copies, so the second arrival of a number
is a duplicate and the time between arrivals of *new* numbers is the gap. What a foreign publisher sends has no
numbers; then only its gaps count.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

WINDOW = 1024
"""Numbers kept while a late copy may still come [units]: 20 s of Opus packets."""


class Stretch(IntEnum):
    """Stretches of time that are measured besides the whole."""

    MOVE = 0
    """Since the player's last move began."""
    OBSERVER = 1
    """Since the observer's last `mark`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GapReport:
    """What one meter has seen."""

    units: int = 0
    """Different units that arrived."""
    duplicates: int = 0
    missing: int = 0
    """Numbers between the first and the last that never came."""
    longest_gap_ms: float = 0.0
    """Longest time between two new units, while the publication was live."""
    longest_gap_at: float | None = None
    """End of that gap [monotonic seconds]."""
    longest_content_gap_ms: float = 0.0
    """Longest run of missing units, as playing time."""
    damaged: int = 0
    """Units whose content was not what the publisher sent."""


class GapMeter:
    """Counts one publication's units. Call `arrived` for each complete unit of any copy, in order of arrival."""

    def __init__(self, *, unit_ms: float) -> None:
        self.unit_ms = unit_ms
        self._ring = [-1] * WINDOW
        self._low = self._high = -1
        self._last_new: float | None = None
        self._longest = 0.0
        self._longest_at: float | None = None
        self._marked = [0.0 for _ in Stretch]
        self._run = self._longest_run = 0
        self._missing = 0
        self.units = 0
        self.duplicates = 0
        self.damaged = 0

    def arrived(self, number: int | None, *, at: float) -> bool:
        """A unit arrived at `at` [monotonic seconds]; True when it is new. Without a `number` it always is."""
        if number is not None and not self._take(number):
            self.duplicates += 1
            return False
        self._gap(at)
        if self._last_new is None or at > self._last_new:
            self._last_new = at
        self.units += 1
        return True

    def damage(self) -> None:
        """A whole unit arrived whose content is not the publisher's."""
        self.damaged += 1

    def paused(self) -> None:
        """The publication has ended or is not subscribed on purpose: what follows is no gap."""
        self._last_new = None

    def mark(self, mark: Stretch) -> None:
        """Begin a stretch of its own; read it with `since`."""
        self._marked[mark] = 0.0

    def since(self, mark: Stretch, *, now: float) -> float:
        """Longest gap since the mark, the one still open at `now` included [ms]."""
        return max(self._marked[mark], self._open(now)) * 1000.0

    def report(self, *, now: float) -> GapReport:
        """The figures so far; a gap still open at `now` counts, for a listener would be hearing it."""
        missing, longest_run = self._unsettled()
        still_open = self._open(now)
        return GapReport(
            units=self.units,
            duplicates=self.duplicates,
            missing=missing,
            longest_gap_ms=round(max(self._longest, still_open) * 1000.0, 2),
            longest_gap_at=now if still_open > self._longest else self._longest_at,
            longest_content_gap_ms=longest_run * self.unit_ms,
            damaged=self.damaged,
        )

    def _open(self, now: float) -> float:
        return 0.0 if self._last_new is None else max(0.0, now - self._last_new)

    def _gap(self, at: float) -> None:
        if self._last_new is None:
            return
        gap = at - self._last_new
        for mark, longest in enumerate(self._marked):
            if gap > longest:
                self._marked[mark] = gap
        if gap > self._longest:
            self._longest, self._longest_at = gap, at

    def _take(self, number: int) -> bool:
        """Mark a number as seen; False when it was before, or is older than the window can tell."""
        if self._high < 0:
            self._low = self._high = number
        elif number == self._high + 1 and self._leaves_no_hole(number - WINDOW):
            self._high = number
        elif number > self._high:
            self._advance(number)
        elif number <= self._high - WINDOW or self._ring[number % WINDOW] == number:
            return False
        elif number < self._low:
            self._low = number  # the very first packets came out of order
        self._ring[number % WINDOW] = number
        return True

    def _leaves_no_hole(self, leaving: int) -> bool:
        """The usual case: what leaves the window for the next number had come, or nothing leaves it yet."""
        if leaving < self._low:
            return True
        if self._ring[leaving % WINDOW] != leaving:
            return False
        self._low, self._run = leaving + 1, 0
        return True

    def _advance(self, number: int) -> None:
        """Settle the numbers that leave the window: whatever of them has not come is missing for good."""
        first = max(self._low, self._high - WINDOW + 1)
        for leaving in range(first, number - WINDOW + 1):
            self._settle(leaving <= self._high and self._ring[leaving % WINDOW] == leaving)
        self._low = max(first, number - WINDOW + 1)
        self._high = number

    def _settle(self, seen: bool) -> None:
        if seen:
            self._run = 0
            return
        self._missing += 1
        self._run += 1
        self._longest_run = max(self._longest_run, self._run)

    def _unsettled(self) -> tuple[int, int]:
        missing, run, longest = self._missing, self._run, self._longest_run
        for number in range(max(self._low, 0), self._high + 1):
            if self._ring[number % WINDOW] == number:
                run = 0
            else:
                missing, run = missing + 1, run + 1
                longest = max(longest, run)
        return missing, longest


class Unwrapper:
    """Turns a number within the looped clip into one that grows from lap to lap, over all copies of a publication.

    A clip lasts `length` units of `unit_s` seconds. The lap is the one that puts the unit nearest to where the clock
    says the publisher should be, so even a silence longer than a clip is counted in full.
    """

    def __init__(self, *, length: int, unit_s: float) -> None:
        self.length = length
        self.unit_s = unit_s
        self._number: int | None = None
        self._at = 0.0

    def number(self, index: int, *, at: float) -> int:
        """The running number of unit `index` of the clip, arrived at `at`. The first one seen is on lap 0."""
        if self._number is None:
            number = index
        else:
            expected = self._number + (at - self._at) / self.unit_s
            laps = round((expected - index) / self.length)
            number = index + max(0, laps) * self.length
        if self._number is None or number > self._number:
            self._number, self._at = number, at
        return number
