"""Where it broke and why, and the ceiling made of it, on scripted machines."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from bench.capacity.figures import EndReason, StepFigures, judge
from bench.capacity.search import CapacityStep, NothingHeld, SizePlan
from tests.bench.capacity.capacity_steps import GOOD, PLAN, Machine, found


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ({}, None),
        ({"delay_ms_p99": 3.0, "loss": 0.001, "sfu_cpu": 0.85}, None),
        ({"delay_ms_p99": 3.01}, EndReason.DELAY),
        ({"loss": 0.0011}, EndReason.LOSS),
        ({"sfu_cpu": 0.86}, EndReason.CPU),
        ({"delay_ms_p99": 4.0, "loss": 0.01, "sfu_cpu": 0.9}, EndReason.CPU),
        ({"delay_ms_p99": 4.0, "loss": 0.01}, EndReason.DELAY),
        ({"loss": 0.01, "generator_drops": 7}, EndReason.GENERATOR),
        ({"delay_ms_p99": 4.0, "generator_cpu": 0.95}, EndReason.GENERATOR),
        ({"delay_ms_p99": 4.0, "late_frames": 0.1}, EndReason.GENERATOR),
        ({"sfu_cpu": 0.9, "delay_ms_p99": 4.0, "generator_cpu": 0.95}, EndReason.CPU),
        ({"generator_cpu": 0.95, "late_frames": 0.1}, None),
    ],
)
def test_a_step_is_judged_by_the_first_rule_it_breaks(broken: dict[str, float], reason: EndReason | None) -> None:
    verdict = judge(replace(GOOD, **broken))  # type: ignore[arg-type]
    assert verdict.reason is reason
    assert verdict.held is (reason is None)


def test_an_sfu_that_does_not_answer_holds_nothing() -> None:
    assert judge(StepFigures(streams=100, players=8, silent="no answer")).reason is EndReason.SILENT


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ({"delay_ms_p99": 3.4}, EndReason.DELAY),
        ({"loss": 0.02}, EndReason.LOSS),
        ({"sfu_cpu": 0.91}, EndReason.CPU),
    ],
)
async def test_the_ceiling_is_80_percent_of_where_the_sfu_broke(broken: dict[str, float], reason: EndReason) -> None:
    machine = Machine(breaks_at=1000, **broken)
    finding = await found(machine)
    assert machine.tried == [*range(100, 1000, 100), 1000, 1000], "upward by the step, and the break twice"
    assert (finding.reason, finding.certain) == (reason, True)
    assert finding.held.figures.streams == 900
    assert finding.broke is not None
    assert finding.broke.figures.streams == 1000
    assert finding.stream_ceiling == 800


async def test_one_bad_try_is_noise() -> None:
    machine = Machine(breaks_at=700, once=(200, 500), sfu_cpu=0.9)
    told: list[CapacityStep] = []
    finding = await found(machine, on_step=told.append)
    assert finding.stream_ceiling == 560
    assert machine.tried.count(200) == machine.tried.count(500) == 2
    assert [step.asked for step in told if not step.verdict.held] == [200, 500, 700, 700], "each try is told"
    again = {step.asked: step.first for step in finding.steps if step.first is not None}
    assert set(again) == {200, 500, 700}, "what was repeated says so"


async def test_a_generator_at_its_limit_finds_no_ceiling_but_a_lower_bound() -> None:
    finding = await found(Machine(breaks_at=1000, loss=0.05, generator_drops=900))
    assert (finding.reason, finding.certain) == (EndReason.GENERATOR, False)
    assert finding.held.figures.streams == 900
    assert finding.stream_ceiling == 720, "of what was held, not of where the generator broke"


async def test_the_search_ends_at_its_upper_bound() -> None:
    machine = Machine(breaks_at=10**9)
    finding = await found(machine, replace(PLAN, most=450))
    assert machine.tried == [100, 200, 300, 400, 450]
    assert (finding.reason, finding.certain, finding.broke) == (EndReason.MOST, False, None)
    assert finding.stream_ceiling == 360


async def test_a_ceiling_is_never_more_than_was_held() -> None:
    assert (await found(Machine(breaks_at=200, loss=0.5))).stream_ceiling == 100


async def test_a_machine_that_holds_nothing_gets_no_ceiling() -> None:
    with pytest.raises(NothingHeld, match="100 streams"):
        await found(Machine(breaks_at=1, delay_ms_p99=8.0))


@pytest.mark.parametrize("breaks_at", [101, 200, 201, 750, 1000, 1550, 3200, 6401])
async def test_a_quick_search_finds_the_same_with_fewer_steps(breaks_at: int) -> None:
    slow, quick = Machine(breaks_at=breaks_at, loss=0.1), Machine(breaks_at=breaks_at, loss=0.1)
    slowly, quickly = await found(slow), await found(quick, replace(PLAN, quick=True))
    assert quickly.stream_ceiling == slowly.stream_ceiling
    assert quickly.broke is not None
    assert slowly.broke is not None
    assert quickly.broke.asked == slowly.broke.asked
    assert breaks_at < 1100 or len(quick.tried) < len(slow.tried)


async def test_a_quick_search_tries_no_more_than_the_upper_bound() -> None:
    machine = Machine(breaks_at=10**9)
    await found(machine, SizePlan(start=100, step=100, most=500, quick=True))
    assert machine.tried == [100, 200, 400, 500]


async def test_others_on_the_cores_are_remembered() -> None:
    assert (await found(Machine(breaks_at=500, sfu_cpu=0.9, others_cpu=0.5))).disturbed
    assert not (await found(Machine(breaks_at=500, sfu_cpu=0.9, others_cpu=0.1))).disturbed


def test_of_a_silent_step_nothing_is_made_up() -> None:
    figures = StepFigures(streams=100, players=8, silent="no answer")
    assert math.isnan(figures.delay_ms_p99)
    assert math.isnan(figures.sfu_cpu)
