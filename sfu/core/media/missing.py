"""Which packets of a publisher's stream are missing and when to ask for them again (RFC 4585 section 6.2.1, M3)."""

from __future__ import annotations

RETRY_S = 0.04
"""Pace of retries before the first answer."""

MIN_RETRY_S = 0.02
"""Pace of retries at least, however soon answers came."""

RETRY_GROWTH = 1.5
"""Each further try of a packet waits so many times longer: a round trip that has grown is not flooded."""

MAX_RETRY_WAIT_S = 0.2
ANSWER_MARGIN = 1.5
"""A retry waits at least this many times what answers took so far: one that is under way is not asked for again."""

MAX_ANSWER_S = 0.4
ANSWER_WEIGHT = 1 / 8
"""Of an answer's time in the mean."""

DOUBTS = 6
"""An answer after several tries may be any one's (Karn's ambiguity) and teaches nothing, or the waits for what was lost
would lengthen the pace, and the pace the waits. So many in a row without one to a first try are another matter: loss
always leaves some of those, a round trip longer than the pace leaves none. Then they count, from the first try on."""

MAX_TRIES = 10
REMEMBERED_S = 2.5
"""From the first try on. What was tried often enough is not asked for again, but waited for as long as this: where a
round trip has grown beyond all tries, answers come after the last of them, and nothing else could tell."""

LOOK_S = 0.01
"""Between two looks at what is due, while anything is missing."""

MAX_REORDER_S = 0.04
"""Longest wait for packets that may merely be late. Real reordering is shallower; beyond it a wait costs the viewers
more than a needless retransmission costs the publisher."""

REORDER_MARGIN = 1.25
"""The wait beyond how late the latest packet was."""

FORGETTING = 1 / 128
"""By how much each gap that closes within the wait shortens it. One that took longer sets it at once: so 3 in 100 late
packets are asked for in vain, and the wait falls to a third in 140 losses when the path has stopped reordering."""

MAX_MISSING = 250
"""More than this missing at once is an outage: a key frame repairs it, a flood of retransmissions does not."""


class MissingPackets:
    """Missing extended sequence numbers of one stream. `asked` counts each packet once.

    On a path that keeps order a packet is asked for at once. Where packets turn out to have been merely late, one waits
    as long as those took, `reorder_s`, so that jitter alone asks for nothing.
    """

    __slots__ = ("_doubted_at", "_doubts", "_open", "answer_s", "asked", "recovered", "reorder_s")

    def __init__(self) -> None:
        # index -> [tries, when to ask next, when it was missed, when it was first asked for]
        self._open: dict[int, list[float]] = {}
        self._doubts = 0
        self._doubted_at = -1.0
        self.reorder_s = 0.0
        self.answer_s = 0.0
        """Smoothed time from asking to the answer; 0 before the first."""
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
            self._open[index] = [0, now + self.reorder_s, now, now]
        return True

    def __contains__(self, index: int) -> bool:
        return index in self._open

    def arrived(self, index: int, *, original: bool, now: float) -> bool:
        """A packet came; True when it was missing. `original`: it can't be the answer to our asking."""
        entry = self._open.pop(index, None)
        if entry is None:
            return False
        self.recovered += 1
        if not original and entry[0] > 0:
            self._answered(entry, now=now)
        late_s = now - entry[2] if original or entry[0] == 0 else 0.0
        if late_s > self.reorder_s:
            self.reorder_s = min(late_s * REORDER_MARGIN, MAX_REORDER_S)
        else:
            self.reorder_s -= self.reorder_s * FORGETTING
        return True

    def _answered(self, entry: list[float], *, now: float) -> None:
        if entry[0] == 1:
            self._doubts = 0
        elif entry[3] != self._doubted_at:  # one question may have been for many packets
            self._doubted_at = entry[3]
            self._doubts = min(self._doubts + 1, DOUBTS)
        else:
            return
        if entry[0] == 1 or self._doubts == DOUBTS:
            took_s = min(now - entry[3], MAX_ANSWER_S)
            self.answer_s = took_s if self.answer_s == 0.0 else self.answer_s + (took_s - self.answer_s) * ANSWER_WEIGHT

    def forget_before(self, index: int) -> None:
        """A key frame began at `index`: what came before it is not needed any more."""
        for old in [missing for missing in self._open if missing < index]:
            del self._open[old]

    def due(self, *, now: float) -> list[int]:
        """The packets to ask for now, in order. What was tried often enough is only waited for, then forgotten."""
        asking = []
        for index, entry in list(self._open.items()):
            tries, next_at = entry[0], entry[1]
            if next_at > now:
                continue
            if tries >= MAX_TRIES:
                entry[1] = entry[3] + REMEMBERED_S
                if entry[1] <= now:
                    del self._open[index]
                continue
            if tries == 0:
                self.asked += 1
                entry[3] = now
            entry[0] = tries + 1
            step_s = RETRY_S if self.answer_s == 0.0 else max(self.answer_s * ANSWER_MARGIN, MIN_RETRY_S)
            entry[1] = now + max(min(step_s * RETRY_GROWTH**tries, MAX_RETRY_WAIT_S), step_s)
            asking.append(index)
        return sorted(asking)
