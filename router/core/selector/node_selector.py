"""The node selector: filter, sort, fall back (P1).

Where a figure is missing the answer is "don't know" (invariant 4): such an SFU is not above a limit, so it stays
eligible, and it is not below one either, so it comes after every SFU whose figures are known to be good. When all known
ones are above the limit, the limit is ignored for them; the unknown ones still come after: ignorance recommends nobody.
Ties are broken by chance.

`order` is the rule in its plainest form. Routers ask `router.core.selector.index`, which gives the same answer for ten
thousand SFUs without sorting them each time.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import NamedTuple

from router.core.selector import any as any_kind
from router.core.selector import cpuload, sysload
from router.core.selector.decision import NO_PREFERENCE, Candidate, Ordering, Preference, Rejected
from router.core.selector.sorts import SORTS, Sort, known


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


class Limit(IntEnum):
    """How an SFU stands to the limit of the kind."""

    WITHIN = 0
    UNKNOWN = 1
    OVER = 2


class Rank(NamedTuple):
    """Where an SFU stands; whoever's is smaller is better. The ladder of the choice, from the top."""

    failing: bool
    """Connections to it fail for many: after everybody else."""
    limit: Limit
    """Above the limit of the kind: after those within."""
    hot: bool
    """Over the cap on joins a second."""
    cold: bool
    """Not warmed up."""
    unknown: bool
    """Its figure is not known."""
    value: float
    """The figure, with what is in flight."""

    @property
    def tier(self) -> int:
        """All but the value as one number of the same order."""
        return tier(self.failing, self.limit, hot=self.hot, cold=self.cold, unknown=self.unknown)


def tier(failing: bool, limit: Limit, *, hot: bool = False, cold: bool = False, unknown: bool = False) -> int:
    """The rungs of the ladder as one number."""
    return (((failing * 3 + limit) * 2 + hot) * 2 + cold) * 2 + unknown


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
    two_choices: bool = False
    """Draw two SFUs among the best of the ladder and take the better, instead of the best of all."""
    join_cost: float = 0.0
    """What a placement in flight adds to the figure; 0: estimate it."""
    reports_until_shown: int = 2
    """Reports after which a placement counts as shown by them."""
    max_joins_per_s: float = 0.0
    """Joins a second above which an SFU is passed over; 0: no cap."""
    warm_up_wait_s: float = 30.0
    """For how long an SFU that has not warmed up is passed over after it was first heard of."""

    @property
    def sort(self) -> Sort:
        return SORTS[self.sort_by]

    def figure(self, candidate: Candidate) -> float | None:
        """What sorts, by the SFU's own report; None: don't know."""
        sort = self.sort
        return known(sort.figure(candidate), absurd=sort.absurd)

    def rank(self, candidate: Candidate) -> Rank:
        """Where the candidate stands."""
        figure = self.figure(candidate)
        return Rank(
            failing=candidate.failing,
            limit=self._limit(candidate),
            hot=candidate.hot,
            cold=candidate.cold,
            unknown=figure is None,
            value=(figure or 0.0) + candidate.in_flight * candidate.cost,
        )

    def passed_over(self, rank: Rank) -> str:
        """The rung that puts it behind others, in a word; empty when only its figure counts."""
        rungs = (
            (rank.failing, "failing-connections"),
            (rank.limit is Limit.OVER, f"{self.kind}-over-limit"),
            (rank.limit is Limit.UNKNOWN, f"{self.kind}-unknown"),
            (rank.hot, "joins-too-fast"),
            (rank.cold, "not-warmed-up"),
            (rank.unknown, f"{self.sort_by}-unknown"),
        )
        return next((why for stands, why in rungs if stands), "")

    def order(
        self, candidates: Iterable[Candidate], *, rng: random.Random, preference: Preference = NO_PREFERENCE
    ) -> Ordering:
        """All candidates, best first."""
        ranked = [(self.rank(candidate), candidate) for candidate in sorted(candidates, key=lambda each: each.sfu)]
        rng.shuffle(ranked)
        ranked.sort(key=lambda each: (each[0].tier, preference.misses(each[1].state), each[0].value))
        sections: list[list[str]] = []
        ignored = []
        for failing in (False, True):
            within, unknown, over = (
                [it.sfu for rank, it in ranked if rank.failing is failing and rank.limit is limit] for limit in Limit
            )
            ignore = bool(over) and not within
            sections += [over, unknown] if ignore else [within, unknown, over]
            ignored.append(ignore)
        over_limit = [Rejected(it.sfu, f"{self.kind}-over-limit") for rank, it in ranked if rank.limit is Limit.OVER]
        first = next((i for i in (0, 1) if any(rank.failing == bool(i) for rank, _ in ranked)), 0)
        return Ordering(
            order=tuple(sfu for section in sections for sfu in section),
            over_limit=tuple(over_limit),
            limit_ignored=ignored[first],
        )

    def _limit(self, candidate: Candidate) -> Limit:
        if self.kind is Kind.ANY:
            return Limit.WITHIN
        figure = known(_FIGURES[self.kind](candidate), absurd=SORTS[self.kind].absurd)
        if figure is None:
            return Limit.UNKNOWN
        most = self.cpu_load_limit if self.kind is Kind.CPULOAD else self.sysload_limit
        return Limit.OVER if figure > most else Limit.WITHIN
