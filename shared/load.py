"""What a node is full of (A1): parts normalised by their ceilings, the fullest of them, and the same for a pool.

What is absent, not a number, negative or absurd is unknown, which is not zero (invariant 4).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from shared.records import Capacities, LoadParts, SfuState

CPU_GUARD = 0.85
"""A node at this CPU share is full (A1)."""

MOST_EGRESS_BPS = 1e12
"""No node sends a terabit a second: a report of more is a fault of the reporter."""
MOST_EGRESS_MBPS = MOST_EGRESS_BPS / 1e6
MOST_STREAMS = 1_000_000
MOST_CPU = 1.0
MOST_CORES = 4096
"""No machine has more. How much of another's CPU work a node can take over counts by cores."""

LEAST_EGRESS_MBPS = 1.0
"""Not one call's worth: a ceiling under it, of a node or of the settings, is a slip of the unit."""
LEAST_STREAMS = 1
LEAST_CPU_GUARD = 0.01

MOST_SHARE = 100.0
"""No node carries as many times its ceiling: figure or ceiling is wrong, and one such node would fill a pool's mean."""


PLACES = 9
"""Decimal places of a mean. Adding up leaves errors far below, and without them a pool that is at a line is at it: 29
samples of 0.65 would else come to 0.6499999999999999."""


class Part(StrEnum):
    """What can run out."""

    EGRESS = "egress"
    """Bits sent a second, by the egress ceiling."""
    STREAMS = "streams"
    """Forwarded outbound streams, by the stream ceiling."""
    CPU = "cpu"
    """CPU, by the guard."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ceilings:
    """What a node can carry."""

    egress_bps: float
    streams: int
    cpu_guard: float = CPU_GUARD


@dataclass(frozen=True, kw_only=True, slots=True)
class Load:
    """Of a node or a pool: each part's share of its ceiling, 1.0 at the ceiling; None: not known."""

    egress: float | None = None
    streams: float | None = None
    cpu: float | None = None

    def part(self, part: Part) -> float | None:
        """One part's share."""
        share: float | None = getattr(self, part.value)
        return share

    @property
    def binding(self) -> Part | None:
        """The fullest part, the first of equals in the order of A1; None unless all are known: any could be fuller."""
        shares = {part: self.part(part) for part in Part}
        known = {part: share for part, share in shares.items() if share is not None}
        return max(known, key=known.__getitem__) if len(known) == len(shares) else None

    @property
    def node(self) -> float | None:
        """The node's load: max, not mean (A1); None unless all parts are known."""
        return None if self.binding is None else self.part(self.binding)

    @property
    def known(self) -> bool:
        """All parts are known."""
        return self.binding is not None


UNKNOWN = Load()
"""No report."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolLoad:
    """The means over the nodes whose load is known."""

    mean: float | None
    """Mean of the nodes' loads, each the max of its parts: a pool of one full of streams and one full of CPU is full.
    None: no node's load is known; the mean of nothing is no number."""
    parts: Load
    """Mean of each part over the same nodes."""
    binding: Part | None
    """The fullest of the mean parts: what to blame."""
    nodes: int
    """Nodes whose load is known."""
    unknown: int
    """Nodes whose load is not."""


def ceilings_of(capacities: Capacities) -> Ceilings | None:
    """A node's own ceilings; None when one of them is no ceiling."""
    egress_mbps = _sane(capacities.egress_mbps, least=LEAST_EGRESS_MBPS, most=MOST_EGRESS_MBPS)
    streams = _sane(capacities.streams, least=LEAST_STREAMS, most=MOST_STREAMS)
    guard = _sane(capacities.cpu_guard, least=LEAST_CPU_GUARD, most=MOST_CPU)
    if egress_mbps is None or streams is None or guard is None:
        return None
    return Ceilings(egress_bps=egress_mbps * 1e6, streams=int(streams), cpu_guard=guard)


def load_of(state: SfuState, ceilings: Ceilings | None = None) -> Load:
    """A node's load from its last report, by its own ceilings or by these."""
    ceilings = ceilings or ceilings_of(state.capacities)
    return UNKNOWN if ceilings is None else normalised(state.load_parts, ceilings)


def normalised(parts: LoadParts, ceilings: Ceilings) -> Load:
    """Each part as a share of its ceiling."""
    return Load(
        egress=_share(parts.egress_bps, ceilings.egress_bps, most=MOST_EGRESS_BPS),
        streams=_share(parts.streams, ceilings.streams, most=MOST_STREAMS),
        cpu=_share(parts.cpu, ceilings.cpu_guard, most=MOST_CPU),
    )


def absurd(parts: LoadParts, ceilings: Ceilings) -> tuple[Part, ...]:
    """The parts that were reported with a value that can't be: unknown, and worth a word, unlike one left out."""
    reported = {Part.EGRESS: parts.egress_bps, Part.STREAMS: parts.streams, Part.CPU: parts.cpu}
    load = normalised(parts, ceilings)
    return tuple(part for part, value in reported.items() if value is not None and load.part(part) is None)


def pool_load(loads: Iterable[Load]) -> PoolLoad:
    """The pool's means; nodes whose load is not known are counted and left out."""
    loads = list(loads)
    known = [load for load in loads if load.known]
    parts = Load(
        egress=_mean(known, lambda load: load.egress),
        streams=_mean(known, lambda load: load.streams),
        cpu=_mean(known, lambda load: load.cpu),
    )
    return PoolLoad(
        mean=_mean(known, lambda load: load.node),
        parts=parts,
        binding=parts.binding,
        nodes=len(known),
        unknown=len(loads) - len(known),
    )


def mean_over_time(loads: Iterable[Load]) -> Load:
    """One node's mean over the samples of a tick (A3); a part that no sample knows stays unknown."""
    loads = list(loads)
    return Load(
        egress=_mean(loads, lambda load: load.egress),
        streams=_mean(loads, lambda load: load.streams),
        cpu=_mean(loads, lambda load: load.cpu),
    )


def _mean(loads: list[Load], figure: Callable[[Load], float | None]) -> float | None:
    values = [value for load in loads if (value := figure(load)) is not None]
    return round(sum(values) / len(values), PLACES) if values else None


def _share(value: float | None, ceiling: float, *, most: float) -> float | None:
    sane = _sane(value, most=most)
    return None if sane is None or sane / ceiling >= MOST_SHARE else sane / ceiling


def _sane(value: float | None, *, least: float = 0.0, most: float) -> float | None:
    """The value if it can be one: a finite number of `least` to `most`."""
    return value if value is not None and math.isfinite(value) and least <= value <= most else None
