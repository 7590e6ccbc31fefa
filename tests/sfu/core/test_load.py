"""Load is the fullest of its parts, from counter differences, and unknown until it is known (A1, A2, invariant 4)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sfu.core.load import Contents, LoadMeter, MachineCpu, Sample, node_load
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


def test_a_counter_that_falls_back_is_no_negative_rate() -> None:
    meter = LoadMeter(cores=1)
    meter.sample(FIRST)
    meter.sample(replace(FIRST, at=11.0, bytes_out=0))
    assert meter.parts(CONTENTS).egress_bps == 0


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
