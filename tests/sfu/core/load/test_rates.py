"""Load is the fullest of its parts, from counter differences, and unknown until it is known (A1, A2, invariant 4)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sfu.core.load.rates import Contents, LoadMeter, MachineCpu, Sample, node_load
from shared.load import Ceilings
from shared.records import LoadParts

CEILINGS = Ceilings(egress_bps=700e6, streams=1200)
CONTENTS = Contents(streams=12, rooms=2, clients=3, tracks=4)
FIRST = Sample(at=10.0, bytes_out=1000, bytes_in=500, process_cpu_s=1.0)


def test_rates_are_unknown_until_there_are_two_samples() -> None:
    meter = LoadMeter(cores=1)
    meter.sample(FIRST)
    parts = meter.parts(CONTENTS)
    assert (parts.egress_bps, parts.cpu, parts.streams) == (None, None, 12)
    assert node_load(parts, CEILINGS) is None


def test_rates_are_differences_a_second() -> None:
    meter = LoadMeter(cores=1)
    meter.sample(FIRST)
    meter.sample(Sample(at=12.0, bytes_out=251_000, bytes_in=125_500, process_cpu_s=1.5, sysload=0.7))
    parts = meter.parts(CONTENTS)
    assert (parts.egress_bps, parts.ingress_bps, parts.cpu, parts.sysload) == (1e6, 500_000, 0.25, 0.7)
    assert (parts.rooms, parts.clients, parts.tracks) == (2, 3, 4)


def test_cpu_is_that_of_the_process_per_core_or_of_the_machine_whichever_is_fuller() -> None:
    first = replace(FIRST, machine=MachineCpu(busy_s=100.0, total_s=1000.0))
    busy = replace(first, at=11.0, process_cpu_s=1.2, machine=MachineCpu(busy_s=101.8, total_s=1002.0))
    meter = LoadMeter(cores=1)
    meter.sample(first)
    meter.sample(busy)
    assert meter.parts(CONTENTS).cpu == pytest.approx(0.9)
    apart = meter.parts(CONTENTS)
    assert (apart.cpu_process, apart.cpu_machine) == (pytest.approx(0.2), pytest.approx(0.9))
    meter.sample(replace(busy, at=12.0, process_cpu_s=2.15, machine=MachineCpu(busy_s=102.3, total_s=1004.0)))
    assert meter.parts(CONTENTS).cpu == pytest.approx(0.95)


def test_the_machines_cpu_is_told_and_does_not_count_when_one_says_so() -> None:
    meter = LoadMeter(cores=1, machine_cpu=False)
    for at, process, busy in ((0.0, 0.0, 0.0), (1.0, 0.3, 1.8)):
        machine = MachineCpu(busy_s=busy, total_s=2 * at)
        meter.sample(Sample(at=at, bytes_out=0, bytes_in=0, process_cpu_s=process, machine=machine))
    parts = meter.parts(Contents(streams=0, rooms=0, clients=0, tracks=0))
    assert (parts.cpu, parts.cpu_process, parts.cpu_machine) == (0.3, 0.3, 0.9)


def test_where_the_system_does_not_tell_the_machine_is_unknown_and_the_process_counts() -> None:
    meter = LoadMeter(cores=2)
    meter.sample(FIRST)
    meter.sample(replace(FIRST, at=11.0, process_cpu_s=2.0, loop_lag_s=0.25))
    parts = meter.parts(CONTENTS)
    assert (parts.cpu, parts.cpu_process, parts.cpu_machine, parts.loop_lag_s) == (0.5, 0.5, None, 0.25)


def test_a_process_over_its_cores_is_full_and_still_told_apart() -> None:
    meter = LoadMeter(cores=1)
    meter.sample(FIRST)
    meter.sample(replace(FIRST, at=11.0, process_cpu_s=2.7))
    assert (meter.parts(CONTENTS).cpu, meter.parts(CONTENTS).cpu_process) == (1.0, 1.7)


@pytest.mark.parametrize(
    ("counter", "unknown"),
    [
        ("bytes_out", {"egress_bps"}),
        ("bytes_in", {"ingress_bps"}),
        ("process_cpu_s", {"cpu", "cpu_process"}),
    ],
)
def test_a_counter_that_falls_gives_no_rate_for_that_sample(counter: str, unknown: set[str]) -> None:
    """It was set back; zero would be a figure that was never measured."""
    meter = LoadMeter(cores=1)
    meter.sample(FIRST)
    meter.sample(replace(FIRST, at=11.0, **{counter: 0}))  # type: ignore[arg-type]
    rates = ("egress_bps", "ingress_bps", "cpu", "cpu_process")
    assert {rate for rate in rates if getattr(meter.parts(CONTENTS), rate) is None} == unknown
    meter.sample(replace(FIRST, at=12.0))
    assert None not in [getattr(meter.parts(CONTENTS), rate) for rate in rates], "counted from where it fell to"


@pytest.mark.parametrize("machine", [MachineCpu(busy_s=90.0, total_s=1010.0), MachineCpu(busy_s=110.0, total_s=990.0)])
def test_a_machines_counter_that_falls_says_nothing_of_the_machine(machine: MachineCpu) -> None:
    meter = LoadMeter(cores=1)
    meter.sample(replace(FIRST, machine=MachineCpu(busy_s=100.0, total_s=1000.0)))
    meter.sample(replace(FIRST, at=11.0, process_cpu_s=1.25, machine=machine))
    parts = meter.parts(CONTENTS)
    assert (parts.cpu_machine, parts.cpu) == (None, 0.25)


@pytest.mark.parametrize("at", [11.0, 10.5])
def test_rates_are_unknown_when_no_time_has_passed(at: float) -> None:
    """What stood there before is not what is measured now, and a division by nothing is no rate."""
    meter = LoadMeter(cores=1)
    meter.sample(FIRST)
    meter.sample(replace(FIRST, at=11.0, bytes_out=126_000))
    assert meter.parts(CONTENTS).egress_bps == 1e6
    meter.sample(replace(FIRST, at=at, bytes_out=126_000))
    parts = meter.parts(CONTENTS)
    assert (parts.egress_bps, parts.ingress_bps, parts.cpu, parts.cpu_process, parts.streams) == (*[None] * 4, 12)
    assert node_load(parts, CEILINGS) is None
    meter.sample(replace(FIRST, at=at + 1, bytes_out=251_000))
    assert meter.parts(CONTENTS).egress_bps == 1e6, "counted from the last sample"


@pytest.mark.parametrize(
    ("parts", "load"),
    [
        (LoadParts(egress_bps=350e6, streams=12, cpu=0.1), 0.5),
        (LoadParts(egress_bps=7e6, streams=1200, cpu=0.1), 1.0),
        (LoadParts(egress_bps=7e6, streams=12, cpu=0.85), 1.0),
        (LoadParts(egress_bps=0.0, streams=0, cpu=0.0), 0.0),
        (LoadParts(egress_bps=7e6, streams=12), None),
    ],
)
def test_the_fullest_part_counts(parts: LoadParts, load: float | None) -> None:
    assert node_load(parts, CEILINGS) == load
