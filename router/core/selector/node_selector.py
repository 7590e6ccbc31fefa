"""The node selector: filter, sort, fall back (P1).

Where a figure is missing the answer is "don't know" (invariant 4): such an SFU is not above a limit, so it stays
eligible, and it is not below one either, so it comes after every SFU whose figures are known to be good. When all known
ones are above the limit, the limit is ignored for them; the unknown ones still come after: ignorance recommends nobody.
Ties are broken by chance.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from router.core.selector import any as any_kind
from router.core.selector import cpuload, sysload
from router.core.selector.decision import Candidate, Ordering, Rejected
from router.core.selector.sorts import SORTS


class Kind(StrEnum):
    """Which limit filters."""

    ANY = "any"
    """None."""
    CPULOAD = "cpuload"
    """Instantaneous CPU load."""
    SYSLOAD = "sysload"
    """One-minute load average per core."""


class SortBy(StrEnum):
    """What orders the rest."""

    RANDOM = "random"
    SYSLOAD = "sysload"
    CPULOAD = "cpuload"
    ROOMS = "rooms"
    CLIENTS = "clients"
    TRACKS = "tracks"
    BYTESPERSEC = "bytespersec"
    LOAD = "load"


Figure = Callable[[Candidate], float | None]
_FIGURES: dict[Kind, Figure] = {
    Kind.ANY: any_kind.figure,
    Kind.CPULOAD: cpuload.figure,
    Kind.SYSLOAD: sysload.figure,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSelector:
    """The settings of the choice."""

    kind: Kind = Kind.ANY
    sort_by: SortBy = SortBy.LOAD
    cpu_load_limit: float = 0.9
    sysload_limit: float = 0.9

    def order(self, candidates: Iterable[Candidate], *, rng: random.Random) -> Ordering:
        """All candidates, best first."""
        within: list[Candidate] = []
        unknown: list[Candidate] = []
        over: list[Candidate] = []
        for candidate in candidates:
            figure = _FIGURES[self.kind](candidate)
            (unknown if figure is None else over if figure > self._limit else within).append(candidate)
        ignored = bool(over) and not within
        tiers = [over, unknown] if ignored else [within, unknown, over]
        return Ordering(
            order=tuple(candidate.sfu for tier in tiers for candidate in self._sorted(tier, rng=rng)),
            over_limit=tuple(Rejected(candidate.sfu, f"{self.kind}-over-limit") for candidate in over),
            limit_ignored=ignored,
        )

    @property
    def _limit(self) -> float:
        return {Kind.ANY: 1.0, Kind.CPULOAD: self.cpu_load_limit, Kind.SYSLOAD: self.sysload_limit}[self.kind]

    def _sorted(self, candidates: list[Candidate], *, rng: random.Random) -> list[Candidate]:
        shuffled = sorted(candidates, key=lambda candidate: candidate.sfu)
        rng.shuffle(shuffled)
        figure = SORTS[self.sort_by]

        def key(candidate: Candidate) -> tuple[bool, float]:
            value = figure(candidate)
            return (value is None, value or 0.0)

        return sorted(shuffled, key=key)
