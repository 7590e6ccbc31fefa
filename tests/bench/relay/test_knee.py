"""The search for the knee: raise until something breaks twice, then halve the gap."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from bench.relay.figures import RelayFigures
from bench.relay.knee import Knee, LimitedBy, Objective, find_knee, judge, next_size
from bench.relay.text import knee_json, knee_text

GOOD = RelayFigures(
    workload="fanout",
    server="sluice",
    subscribers=1,
    profile="p",
    seconds=1.0,
    packets_in_per_s=1.0,
    packets_out_per_s=1.0,
    loss=0.0,
    cpu_us_per_packet=1.0,
    cpu_us_user=0.5,
    cpu_us_sys=0.5,
    packets_per_send=1.0,
    delay_ms_p50=1.0,
    delay_ms_p99=2.0,
    arrival_ms_p50=1.0,
    arrival_ms_p99=2.0,
    rss_kib_per_subscriber=1.0,
    server_core_share=0.5,
    generator_core_share=0.5,
    others_core_share=0.0,
    generator_drops=0,
    late_frames=0.0,
    verified=1,
)
LATE = replace(GOOD, delay_ms_p99=3.5)


@pytest.mark.parametrize(
    ("tried", "size"),
    [
        ({}, 100),
        ({100: True}, 150),
        ({100: True, 150: True}, 225),
        ({100: False}, 50),
        ({100: True, 150: False}, 125),
        ({100: True, 125: True, 150: False}, 137),
        ({100: True, 103: False}, None),
        ({1: False}, None),
        ({100: True, 1000: True}, None),
        ({2: True, 3: False}, None),
        ({100: False, 50: True, 150: True}, 75),
    ],
)
def test_sizes_are_raised_until_one_breaks_and_then_the_gap_is_halved(tried: dict[int, bool], size: int | None) -> None:
    assert next_size(tried, start=100, most=1000) == size


def test_the_search_never_passes_its_end() -> None:
    assert next_size({800: True}, start=100, most=1000) == 1000
    assert next_size({}, start=100, most=60) == 60


@pytest.mark.parametrize(
    ("figures", "objectives", "limit"),
    [
        (replace(GOOD, loss=0.002), (Objective.LOSS,), LimitedBy.BURST),
        (LATE, (Objective.DELAY,), LimitedBy.BURST),
        (replace(LATE, loss=0.5, server_core_share=0.97), (Objective.LOSS, Objective.DELAY), LimitedBy.SERVER_CPU),
        (replace(LATE, server_core_share=0.97, generator_core_share=0.95), (Objective.DELAY,), LimitedBy.GENERATOR),
        (replace(GOOD, loss=0.01, generator_drops=1), (Objective.LOSS,), LimitedBy.GENERATOR),
        (replace(LATE, others_core_share=0.5), (Objective.DELAY,), LimitedBy.OTHERS),
    ],
)
def test_what_broke_and_why_is_named(
    figures: RelayFigures, objectives: tuple[Objective, ...], limit: LimitedBy
) -> None:
    broken = judge(figures)
    assert broken is not None
    assert (broken.objectives, broken.limit) == (objectives, limit)


def test_good_figures_break_nothing() -> None:
    assert judge(GOOD) is None
    assert judge(replace(GOOD, loss=0.001, delay_ms_p99=3.0)) is None


async def searched(probe: Callable[[int], Awaitable[RelayFigures]]) -> Knee:
    return await find_knee(probe, start=100, most=2000, on_step=lambda step: None)


async def test_the_knee_is_found() -> None:
    async def holds_260(size: int) -> RelayFigures:
        return GOOD if size <= 260 else LATE

    knee = await searched(holds_260)
    assert 248 <= knee.size <= 260
    assert knee.broken is not None
    assert [step.size for step in knee.steps] == sorted(step.size for step in knee.steps)
    assert f"sluice holds {knee.size} subscribers; then delay breaks" in knee_text("sluice", "subscribers", knee)
    assert knee_json("fanout", [("sluice", knee)])["broke_first"] == "delay"


async def test_a_size_that_breaks_once_is_tried_again() -> None:
    asked: list[int] = []

    async def stumbles_once(size: int) -> RelayFigures:
        asked.append(size)
        return LATE if len(asked) == 1 or size > 400 else GOOD

    knee = await searched(stumbles_once)
    assert asked[:3] == [100, 100, 150]
    assert knee.size > 350


async def test_all_good_is_said_so() -> None:
    async def holds(size: int) -> RelayFigures:
        return GOOD

    knee = await searched(holds)
    assert (knee.size, knee.broken) == (2000, None)
    assert "held all that was tried" in knee_text("sluice", "subscribers", knee)
