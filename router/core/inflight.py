"""What has just been placed on each SFU and is not in its reports yet (P4).

A placement is noted under the version of the report that it was decided by. Once the SFU's reports have gone on by
`REPORTS_UNTIL_SHOWN` revisions they show it, and it counts no longer: no clock is compared with another host's. Where
reports do not come, or have no revisions (D9), `IN_FLIGHT_LIFE_S` ends it.

The truth is in Redis, where all routers count (`place_room`). This is what this router was told of it last; numbers
under one version only grow, so that answers may overtake each other. While Redis is away, only what this router places
counts.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping

from shared.placing import IN_FLIGHT_LIFE_S, REPORTS_UNTIL_SHOWN, Counts, Version

NONE = Counts()


class InFlight:
    """Counts by SFU and version. `now` is monotonic seconds of this process."""

    def __init__(self) -> None:
        self._counts: dict[str, dict[Version, Counts]] = {}
        self._ends: OrderedDict[tuple[str, Version], float] = OrderedDict()

    def told(self, sfu: str, counts: Mapping[Version, Counts], *, now: float) -> None:
        """What Redis has counted for an SFU; of two answers the greater numbers are the later ones."""
        for version, new in counts.items():
            known = self._counts.get(sfu, {}).get(version, NONE)
            self._set(sfu, version, Counts(max(known.joins, new.joins), max(known.rooms, new.rooms)), now=now)

    def add(self, sfu: str, version: Version, *, rooms: int, now: float) -> None:
        """One more join, placed by this router alone."""
        known = self._counts.get(sfu, {}).get(version, NONE)
        self._set(sfu, version, Counts(known.joins + 1, known.rooms + rooms), now=now)

    def of(self, sfu: str, shown_by: Version) -> Counts:
        """What a report of that version does not show yet."""
        counts = self._counts.get(sfu)
        return in_flight(counts, shown_by) if counts else NONE

    def reported(self, sfu: str, version: Version) -> None:
        """Forget what reports up to this one show."""
        counts = self._counts.get(sfu)
        for placed in [] if not counts else [each for each in counts if shown(each, version)]:
            self._forget(sfu, placed)

    def expire(self, *, now: float) -> list[str]:
        """Forget what is too old; the SFUs concerned."""
        over = []
        while self._ends and next(iter(self._ends.values())) <= now:
            sfu, version = next(iter(self._ends))
            self._forget(sfu, version)
            over.append(sfu)
        return over

    @property
    def sfus(self) -> tuple[str, ...]:
        """SFUs with something in flight."""
        return tuple(self._counts)

    @property
    def joins(self) -> int:
        """All joins in flight, as far as this router knows."""
        return sum(counts.joins for by_version in self._counts.values() for counts in by_version.values())

    def _set(self, sfu: str, version: Version, counts: Counts, *, now: float) -> None:
        if counts == NONE:
            return
        self._counts.setdefault(sfu, {})[version] = counts
        if (sfu, version) not in self._ends:
            self._ends[(sfu, version)] = now + IN_FLIGHT_LIFE_S

    def _forget(self, sfu: str, version: Version) -> None:
        self._ends.pop((sfu, version), None)
        counts = self._counts[sfu]
        del counts[version]
        if not counts:
            del self._counts[sfu]


def shown(placed: Version, by: Version) -> bool:
    """A report of version `by` shows what was placed under `placed`; a later incarnation has forgotten it."""
    if by[0] != placed[0]:
        return by[0] > placed[0]
    return by[1] >= placed[1] + REPORTS_UNTIL_SHOWN


def in_flight(counts: Mapping[Version, Counts], shown_by: Version) -> Counts:
    """The sum of what a report of that version does not show."""
    left = [each for version, each in counts.items() if not shown(version, shown_by)]
    return Counts(sum(each.joins for each in left), sum(each.rooms for each in left))
