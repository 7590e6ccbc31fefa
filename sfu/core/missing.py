"""Which packets of a publisher's stream are missing and when to ask for them again (RFC 4585 section 6.2.1, M3)."""

from __future__ import annotations

RETRY_S = 0.04
"""Pace of retries; each further try of a packet waits one step longer, so that a long round trip is not flooded."""

MAX_RETRY_WAIT_S = 0.2
MAX_TRIES = 10
MAX_MISSING = 250
"""More than this missing at once is an outage: a key frame repairs it, a flood of retransmissions does not."""


class MissingPackets:
    """Missing extended sequence numbers of one stream. `asked` counts each packet once."""

    __slots__ = ("_open", "asked", "recovered")

    def __init__(self) -> None:
        # index -> [tries, when to ask next]
        self._open: dict[int, list[float]] = {}
        self.asked = 0
        self.recovered = 0

    def __len__(self) -> int:
        return len(self._open)

    def gap(self, first: int, end: int, *, now: float) -> bool:
        """Packets `first` .. `end - 1` were skipped. False when that is too much to ask for: forget it all, get a key
        frame instead."""
        if end - first + len(self._open) > MAX_MISSING:
            self._open.clear()
            return False
        for index in range(first, end):
            self._open[index] = [0, now]
        return True

    def arrived(self, index: int) -> bool:
        """A packet came; True when it was missing."""
        if self._open.pop(index, None) is None:
            return False
        self.recovered += 1
        return True

    def forget_before(self, index: int) -> None:
        """A key frame began at `index`: nobody needs what came before it."""
        for old in [missing for missing in self._open if missing < index]:
            del self._open[old]

    def due(self, *, now: float) -> list[int]:
        """The packets to ask for now, in order; those tried often enough are given up."""
        asking = []
        for index, entry in list(self._open.items()):
            tries, next_at = entry
            if next_at > now:
                continue
            if tries >= MAX_TRIES:
                del self._open[index]
                continue
            if tries == 0:
                self.asked += 1
            entry[0] = tries + 1
            entry[1] = now + min(RETRY_S * (tries + 1), MAX_RETRY_WAIT_S)
            asking.append(index)
        return sorted(asking)

    def next_at(self) -> float | None:
        """When `due` has something to say."""
        return min((entry[1] for entry in self._open.values()), default=None)
