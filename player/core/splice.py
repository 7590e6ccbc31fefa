"""One publication as one continuous stream over all of its copies, while it moves from SFU to SFU.

Each copy has numbers of its own, so a unit's time is given in ticks since the first unit of all. A new copy takes over
as soon as it is known where it belongs: by content, when its publisher sends the same bytes to both SFUs, and then no
unit is lost or doubled; else by the clock, after a moment's wait, beginning with its first key frame.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, field

from shared.rtc.rtp import timestamp_delta

HOLD_S = 0.25
"""How long a new copy may wait for the unit that shows where it belongs: SFUs are hardly further apart than this."""
QUIET_S = 0.15
"""Without a unit for this long the playing copy has ended, and there is nothing to wait for."""
RETURN_S = 0.5
"""A copy that was replaced plays again when the one that replaced it has been silent for this long."""
MIN_MARK = 16
"""Bytes a unit must have to be recognised by: shorter ones, such as silence, are alike."""
REMEMBERED = 64
"""Units of the playing copy that are remembered: a second of sound."""
MAX_WAITING = 128
"""Units of a new copy that wait at most."""
MAX_COPIES = 8
_AMBIGUOUS = -1

Unit = tuple[int, bytes]
"""Ticks since the publication's first unit, and content."""


@dataclass(slots=True)
class _Copy:
    newest: int
    """Latest RTP timestamp."""
    extended: int = 0
    """The same, counted on across wraps."""
    waiting: list[tuple[int, bytes, float]] = field(default_factory=list)
    """Extended timestamp, unit, arrival: until it plays."""
    retired: bool = False

    def unwrap(self, timestamp: int) -> int:
        ahead = timestamp_delta(timestamp, self.newest)
        value = self.extended + ahead
        if ahead > 0:
            self.newest, self.extended = timestamp, value
        return value


class Splice:
    """Feed it the units of all copies in order of arrival. `clock` in Hz; `whole`: a new copy must play from its first
    unit on, which is a key frame (video)."""

    def __init__(self, *, clock: int, whole: bool) -> None:
        self._clock = clock
        self._whole = whole
        self._copies: dict[Hashable, _Copy] = {}
        self._playing: Hashable | None = None
        self._offset = 0
        """From the playing copy's extended timestamps to ticks."""
        self._floor = -1
        """Units up to here were played when the playing copy took over [ticks]."""
        self._last = -1
        self._last_at = 0.0
        self._marks: dict[bytes, int] = {}
        self._recent: deque[tuple[int, bytes]] = deque(maxlen=REMEMBERED)

    def add(self, key: Hashable, unit: bytes, timestamp: int, *, at: float) -> list[Unit]:
        """A unit of the copy `key` came at `at` [monotonic seconds]; what is to be played now, in order."""
        copy = self._copies.get(key)
        if copy is None:
            copy = self._copies[key] = _Copy(timestamp)
            self._forget_oldest()
        extended = copy.unwrap(timestamp)
        if self._playing is None:
            self._playing, self._offset = key, -extended
        if key == self._playing:
            played = self._play(extended + self._offset, unit, at)
            return [*played, *self._matches(unit)] if played else []
        if copy.retired and at - self._last_at < RETURN_S:
            return []
        copy.retired = False
        copy.waiting.append((extended, unit, at))
        ticks = self._marks.get(unit, _AMBIGUOUS)
        if ticks != _AMBIGUOUS:
            return self._take_over(key, offset=ticks - extended, exact=True)
        return self._take_over(key, offset=self._estimate(copy), exact=False) if self._overdue(copy, at) else []

    def _overdue(self, copy: _Copy, at: float) -> bool:
        waited = at - copy.waiting[0][2]
        return waited >= HOLD_S or at - self._last_at >= QUIET_S or len(copy.waiting) >= MAX_WAITING

    def _estimate(self, copy: _Copy) -> int:
        """The offset by which the copy's first unit is as much later than the last played as it came later."""
        extended, _, at = copy.waiting[0]
        return self._last + int((at - self._last_at) * self._clock) - extended

    def _matches(self, unit: bytes) -> list[Unit]:
        """The playing copy has brought a unit that another one brought before."""
        ticks = self._marks.get(unit, _AMBIGUOUS)
        for key, copy in self._copies.items() if ticks != _AMBIGUOUS else ():
            same = [extended for extended, waiting, _ in copy.waiting if waiting == unit]
            if len(same) == 1:
                return self._take_over(key, offset=ticks - same[0], exact=True)
        return []

    def _take_over(self, key: Hashable, *, offset: int, exact: bool) -> list[Unit]:
        for other, copy in self._copies.items():
            copy.retired = other != key
        waiting, self._copies[key].waiting = self._copies[key].waiting, []
        self._playing, self._offset, self._floor = key, offset, self._last
        played: list[Unit] = []
        for extended, unit, at in waiting:
            ticks = extended + offset
            if self._whole and not exact:
                ticks = max(ticks, self._last + 1)
            played += self._play(ticks, unit, at)
        return played

    def _play(self, ticks: int, unit: bytes, at: float) -> list[Unit]:
        if ticks <= self._floor or any(ticks == known for known, _ in self._recent):
            return []
        if len(self._recent) == REMEMBERED:
            self._marks.pop(self._recent[0][1], None)
        self._recent.append((ticks, unit))
        if len(unit) >= MIN_MARK:
            self._marks[unit] = _AMBIGUOUS if unit in self._marks else ticks
        self._last, self._last_at = max(self._last, ticks), at
        return [(ticks, unit)]

    def _forget_oldest(self) -> None:
        while len(self._copies) > MAX_COPIES:
            del self._copies[next(key for key in self._copies if key != self._playing)]
