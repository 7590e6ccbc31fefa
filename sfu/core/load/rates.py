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

    def __init__(self, *, cores: int, machine_cpu: bool = True) -> None:
        """Without `machine_cpu` the machine's CPU is reported and does not count as this node's."""
        self._cores = cores
        self._machine_cpu = machine_cpu
        self._last: Sample | None = None
        self._rates = LoadParts()

    def sample(self, sample: Sample) -> None:
        """Take a sample; rates are the differences to the one before.

        They are unknown when no time has passed since it: the old ones are not what is measured now.
        """
        last, self._last = self._last, sample
        self._rates = LoadParts() if last is None or sample.at <= last.at else self._between(last, sample)

    def _between(self, last: Sample, now: Sample) -> LoadParts:
        elapsed = now.at - last.at
        process, machine = process_share(last, now, cores=self._cores), machine_share(last, now)
        return LoadParts(
            cpu=_share(self._cpu(process, machine)),
            cpu_process=_short(process),
            cpu_machine=_share(machine),
            sysload=now.sysload,
            loop_lag_s=_short(now.loop_lag_s),
            egress_bps=_rate(8 * last.bytes_out, 8 * now.bytes_out, elapsed),
            ingress_bps=_rate(8 * last.bytes_in, 8 * now.bytes_in, elapsed),
        )

    def _cpu(self, process: float | None, machine: float | None) -> float | None:
        """Where a neighbour uses the cores, there is no room for us either."""
        if process is None or not self._machine_cpu:
            return process
        return max(process, machine or 0.0)

    def parts(self, contents: Contents) -> LoadParts:
        """The parts as they go into `SfuState`; rates are None until there are two samples."""
        return msgspec.structs.replace(
            self._rates,
            streams=contents.streams,
            rooms=contents.rooms,
            clients=contents.clients,
            tracks=contents.tracks,
        )


def process_share(last: Sample, now: Sample, *, cores: int) -> float | None:
    """CPU of this process per core it may use; over 1 while it uses more than its share. None: the counter fell."""
    return _rate(last.process_cpu_s, now.process_cpu_s, (now.at - last.at) * cores)


def machine_share(last: Sample, now: Sample) -> float | None:
    """CPU of the whole machine [0..1]; None where the system does not tell, or its counters stood still or fell."""
    if last.machine is None or now.machine is None or now.machine.total_s <= last.machine.total_s:
        return None
    return _rate(last.machine.busy_s, now.machine.busy_s, now.machine.total_s - last.machine.total_s)


def node_load(parts: LoadParts, ceilings: Ceilings) -> float | None:
    """Max of the parts, 1.0 at the ceiling; None while a part is not known (invariant 4)."""
    fullest = normalised(parts, ceilings).node
    return None if fullest is None else round(fullest, 4)


def _rate(last: float, now: float, elapsed: float) -> float | None:
    """What a counter gained a second. One that fell has been set back, and what it had gained until then is lost."""
    return (now - last) / elapsed if now >= last else None


def _share(value: float | None) -> float | None:
    return None if value is None else _short(min(1.0, value))


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
