"""Scripted machines for tests of `sluice capacity`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from bench.capacity.figures import StepFigures
from bench.capacity.host import Egress, Host
from bench.capacity.search import CapacityStep, Finding, SizePlan, conclude, search
from bench.capacity.settings import CapacitySettings
from bench.capacity.text import CapacityReport

GOOD = StepFigures(
    streams=100,
    players=8,
    packets_per_s=5500.0,
    egress_mbps=28.0,
    loss=0.0,
    delay_ms_p50=0.2,
    delay_ms_p99=0.5,
    sfu_cpu=0.1,
    generator_cpu=0.1,
    others_cpu=0.0,
    generator_drops=0,
    late_frames=0.0,
)


class Machine:
    """Breaks as told from a size on; `once` are sizes that break on the first try only."""

    def __init__(self, *, breaks_at: int, once: tuple[int, ...] = (), **broken: object) -> None:
        self.tried: list[int] = []
        self._breaks_at = breaks_at
        self._once = set(once)
        self._broken = broken

    async def probe(self, streams: int) -> StepFigures:
        self.tried.append(streams)
        good = replace(GOOD, streams=streams)
        if streams in self._once:
            self._once.discard(streams)
            return replace(good, delay_ms_p99=9.0)
        return replace(good, **self._broken) if streams >= self._breaks_at else good  # type: ignore[arg-type]


PLAN = SizePlan(start=100, step=100, most=10_000)


async def found(
    machine: Machine, plan: SizePlan = PLAN, on_step: Callable[[CapacityStep], None] = lambda step: None
) -> Finding:
    probe: Callable[[int], Awaitable[StepFigures]] = machine.probe
    return conclude(await search(probe, plan, on_step=on_step))


def report(finding: Finding, **settings: object) -> CapacityReport:
    """As if found on a small machine."""
    return CapacityReport(
        finding=finding,
        egress=Egress(ceiling_mbps=700.0, how="70% of 1000 Mbit/s as told"),
        host=Host(cpu="Some CPU", cores=2, kernel="6.1", load=0.1, others=0.02),
        settings=CapacitySettings(**settings),  # type: ignore[arg-type]
        at=1_796_000_000.0,
    )
