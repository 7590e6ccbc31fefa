"""Node load from counters (A1, A2): the fullest of egress, streams and CPU; unknown until there are two samples."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from shared.records import LoadParts

CPU_GUARD = 0.85
"""A node at this CPU share is full (A1)."""


@dataclass(frozen=True, slots=True)
class MachineCpu:
    """CPU time of all cores together since the machine started [s]."""

    busy_s: float
    total_s: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """Counters at one moment."""

    at: float
    """Monotonic seconds."""
    bytes_out: int
    bytes_in: int
    process_cpu_s: float
    """CPU time of this process since it started."""
    machine: MachineCpu | None = None
    """None where the system does not tell."""
    sysload: float | None = None
    """One-minute load average per core."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ceilings:
    """What the node can carry."""

    egress_bps: float
    streams: int
    cpu_guard: float = CPU_GUARD


@dataclass(frozen=True, kw_only=True, slots=True)
class Contents:
    """What is on the node now."""

    streams: int
    rooms: int
    clients: int
    tracks: int


class LoadMeter:
    """Turns samples into rates. Sample once a second."""

    def __init__(self, *, cores: int) -> None:
        self._cores = cores
        self._last: Sample | None = None
        self._rates = LoadParts()

    def sample(self, sample: Sample) -> None:
        """Take a sample; rates are the differences to the one before."""
        last, self._last = self._last, sample
        if last is None or sample.at <= last.at:
            return
        elapsed = sample.at - last.at
        self._rates = LoadParts(
            cpu=round(min(1.0, cpu_share(last, sample, cores=self._cores)), 4),
            sysload=sample.sysload,
            egress_bps=8 * max(0, sample.bytes_out - last.bytes_out) / elapsed,
            ingress_bps=8 * max(0, sample.bytes_in - last.bytes_in) / elapsed,
        )

    def parts(self, contents: Contents) -> LoadParts:
        """The parts as they go into `SfuState`; rates are None until there are two samples."""
        return msgspec.structs.replace(
            self._rates,
            streams=contents.streams,
            rooms=contents.rooms,
            clients=contents.clients,
            tracks=contents.tracks,
        )


def cpu_share(last: Sample, now: Sample, *, cores: int) -> float:
    """CPU of this process per core it may use, or of the whole machine, whichever is fuller: where a neighbour uses the
    cores, there is no room for us either."""
    own = max(0.0, now.process_cpu_s - last.process_cpu_s) / (now.at - last.at) / cores
    if last.machine is None or now.machine is None or now.machine.total_s <= last.machine.total_s:
        return own
    machine = (now.machine.busy_s - last.machine.busy_s) / (now.machine.total_s - last.machine.total_s)
    return max(own, machine)


def node_load(parts: LoadParts, ceilings: Ceilings) -> float | None:
    """Max of the parts, 1.0 at the ceiling; None while a part is not known (invariant 4)."""
    if parts.egress_bps is None or parts.streams is None or parts.cpu is None:
        return None
    fullest = max(
        parts.egress_bps / ceilings.egress_bps, parts.streams / ceilings.streams, parts.cpu / ceilings.cpu_guard
    )
    return round(fullest, 4)
