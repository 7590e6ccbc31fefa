"""A node's load from its counters (A2): rates are differences between two samples, unknown until there are two."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from shared.load import Ceilings, normalised
from shared.records import LoadParts


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
    loop_lag_s: float | None = None
    """Longest that the event loop kept something due waiting since the sample before."""


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
        process, machine = process_share(last, sample, cores=self._cores), machine_share(last, sample)
        # Where a neighbour uses the cores, there is no room for us either.
        cpu = max(process, machine or 0.0)
        self._rates = LoadParts(
            cpu=_share(cpu),
            cpu_process=round(process, 4),
            cpu_machine=None if machine is None else _share(machine),
            sysload=sample.sysload,
            loop_lag_s=None if sample.loop_lag_s is None else round(sample.loop_lag_s, 4),
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


def process_share(last: Sample, now: Sample, *, cores: int) -> float:
    """CPU of this process per core it may use; over 1 while it uses more than its share."""
    return max(0.0, now.process_cpu_s - last.process_cpu_s) / (now.at - last.at) / cores


def machine_share(last: Sample, now: Sample) -> float | None:
    """CPU of the whole machine [0..1]; None where the system does not tell, or its counters did not move."""
    if last.machine is None or now.machine is None or now.machine.total_s <= last.machine.total_s:
        return None
    return (now.machine.busy_s - last.machine.busy_s) / (now.machine.total_s - last.machine.total_s)


def node_load(parts: LoadParts, ceilings: Ceilings) -> float | None:
    """Max of the parts, 1.0 at the ceiling; None while a part is not known (invariant 4)."""
    fullest = normalised(parts, ceilings).node
    return None if fullest is None else round(fullest, 4)


def _share(value: float) -> float:
    return round(min(1.0, max(0.0, value)), 4)
