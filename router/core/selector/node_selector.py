"""The node selector: filter, sort, fall back (P1).

Where a figure is missing the answer is "don't know" (invariant 4): such an SFU is not above a limit, so it stays
eligible, and it is not below one either, so it comes after every SFU whose figures are known to be good. When all known
ones are above the limit, the limit is ignored for them; the unknown ones still come after them: not to know an SFU's
load is no reason to choose it. Ties are broken by chance.

This says how one SFU stands; `router.core.selector.index` keeps ten thousand of them in order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from router.core.selector.decision import Standing
from router.core.selector.ladder import COLD, FAILING, LIMIT_UNKNOWN, OVER_LIMIT, ROLLED_NEXT, UNKNOWN, why_behind
from router.core.selector.sorts import SORTS, Sort, known
from shared.placing import OTHER, TOO_FAST
from shared.records import SfuState, version_of


class SelectorKind(StrEnum):
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


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSelector:
    """The settings of the choice. Flags and variables of `sluice router`, under these names."""

    node_selector_kind: SelectorKind = SelectorKind.ANY
    """Which limit filters SFUs: any, cpuload, sysload."""
    sort_by: SortBy = SortBy.LOAD
    """What orders SFUs: random, sysload, cpuload, rooms, clients, tracks, bytespersec, load."""
    cpu_load_limit: float = 0.9
    """CPU load above which `cpuload` leaves an SFU out [share of its cores]."""
    sysload_limit: float = 0.9
    """One-minute load average per core above which `sysload` leaves an SFU out."""
    two_choices: bool = False
    """Draw two SFUs by chance among the best of the ladder and take the better one, instead of the best of all."""
    max_joins_per_s: float = 0.0
    """Joins a second above which an SFU is passed over while there is another, over all routers; 0: no cap."""

    @property
    def sort(self) -> Sort:
        return SORTS[self.sort_by]

    def figure(self, state: SfuState) -> float | None:
        """What sorts, by the SFU's own report; None: don't know."""
        sort = self.sort
        return known(sort.figure(state), absurd=sort.absurd)

    def is_too_fast(self, joins_per_s: float) -> bool:
        """Whether so many joins a second are over the cap."""
        return 0 < self.max_joins_per_s <= joins_per_s

    def standing(
        self,
        sfu: str,
        state: SfuState,
        *,
        in_flight: int = 0,
        cost: float = 0.0,
        failing: bool = False,
        too_fast: bool = False,
        cold: bool = False,
        rolled_next: bool = False,
    ) -> Standing:
        """How an SFU stands, by its report and by what no report says."""
        figure = self.figure(state)
        rank = (
            OTHER
            | (FAILING if failing else 0)
            | self._limit(state)
            | (TOO_FAST if too_fast else 0)
            | (COLD if cold else 0)
            | (UNKNOWN if figure is None else 0)
            | (ROLLED_NEXT if rolled_next else 0)
        )
        return Standing(
            sfu=sfu,
            version=version_of(state),
            rank=rank,
            figure=figure or 0.0,
            cost=cost,
            state=state,
            known=figure is not None,
            in_flight=in_flight,
            passed_over=self._why_behind(rank),
        )

    def behind(self, standing: Standing, digits: int) -> Standing:
        """How the SFU stands when these digits of the ladder hold for it, too."""
        rank = standing.rank | digits
        if rank == standing.rank:
            return standing
        return replace(standing, rank=rank, passed_over=standing.passed_over or self._why_behind(rank))

    def _why_behind(self, rank: int) -> str:
        return why_behind(rank, kind=self.node_selector_kind, sort_by=self.sort_by)

    def _limit(self, state: SfuState) -> int:
        """The digit for the limit of the kind."""
        kind = self.node_selector_kind
        if kind is SelectorKind.ANY:
            return 0
        of_cpu = kind is SelectorKind.CPULOAD
        sort, most = SORTS[kind], self.cpu_load_limit if of_cpu else self.sysload_limit
        figure = known(sort.figure(state), absurd=sort.absurd)
        if figure is None:
            return LIMIT_UNKNOWN
        return OVER_LIMIT if figure > most else 0
