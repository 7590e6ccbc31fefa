"""What players say of cordons that this router has not heard of yet (invariant 1), bounded by what they could know.

A claim counts for the room of the player who made it, and only up to a version that the SFU can have reached since its
last word here. One player's word therefore moves its own room at most.
"""

from __future__ import annotations

from collections import OrderedDict

from router.core.directory import Directory
from shared.placing import Version
from shared.records import version_of

AHEAD = 60
"""Revisions that an SFU may be ahead of its last word here: a minute of reports, one a second."""
AHEAD_PER_S = 2
"""And for each second since that word: a report a second and as many changes."""
MAX_ROOMS = 4096
"""Rooms with claims; the room that was silent longest is forgotten first."""
MAX_A_ROOM = 16
"""SFUs that one room has claims about; the oldest is forgotten first."""


class Claims:
    """The claims made to one router. `now` is monotonic seconds of this process."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._rooms: OrderedDict[str, dict[str, Version]] = OrderedDict()

    def heed(self, room: str, sfu: str, version: Version, *, now: float) -> None:
        """A player of `room` was told elsewhere that `sfu` is cordoned at `version`."""
        if version <= (0, 0) or not self._holds(sfu, version, now=now):
            return
        claims = self._rooms.setdefault(room, {})
        self._rooms.move_to_end(room)
        version = max(version, claims.pop(sfu, version))
        claims[sfu] = version
        if len(claims) > MAX_A_ROOM:
            del claims[next(iter(claims))]
        if len(self._rooms) > MAX_ROOMS:
            self._rooms.popitem(last=False)

    def doubted(self, room: str, *, now: float) -> frozenset[str]:
        """SFUs that count as cordoned for this room, until their own word has caught up."""
        claims = self._rooms.get(room)
        if claims is None:
            return frozenset()
        for sfu in [sfu for sfu, version in claims.items() if not self._holds(sfu, version, now=now)]:
            del claims[sfu]
        if not claims:
            del self._rooms[room]
        return frozenset(claims)

    def _holds(self, sfu: str, version: Version, *, now: float) -> bool:
        """The SFU can have been at `version`, and this router has not heard from it since."""
        state = self._directory.state(sfu)
        if state is None:
            return True  # Redis may yet show us a state from before that
        incarnation, revision = version_of(state)
        ahead = AHEAD + AHEAD_PER_S * self._directory.silent_s(sfu, now=now)
        return version[0] == incarnation and revision < version[1] <= revision + ahead
