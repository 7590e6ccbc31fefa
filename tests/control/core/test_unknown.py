"""Unknown is not zero: nodes, reports and listings that can't be believed change nothing (invariant 4)."""

from __future__ import annotations

import pytest

from control.core.scaling_settings import ScalingSettings
from shared.records import Capacities
from shared.scaling_records import ScaleAction
from tests.fakes.scaling_worlds import HOT, QUIET, rig


@pytest.mark.parametrize(
    "field",
    [
        {"silent": True},
        {"registered": False},
        {"streams": -5},
        {"egress_bps": float("nan")},
        {"egress_bps": 1e15},
        {"cpu": float("inf")},
        {"capacities": Capacities(streams=0)},
        {"players": -1},
    ],
)
def test_a_node_that_says_nothing_believable_is_unknown_and_nothing_is_taken_out(field: dict[str, float]) -> None:
    it = rig(load=QUIET, nodes=5)
    it.ticks(10)
    for name, value in field.items():
        setattr(it.sfus["s1"], name, value)
    figures = it.ticks(30)[-1].figures
    assert (figures.unknown or figures.lost, figures.quiet_ticks) == (1, 0)
    assert it.journal == []


def test_a_node_that_fell_silent_within_the_tick_is_unknown_at_its_end() -> None:
    it = rig(nodes=3)
    it.tick()
    it.pass_time(10)
    it.sfus["s1"].silent = True
    figures = it.tick().figures
    assert (figures.capacity, figures.unknown) == (2, 1)


def test_figures_that_can_not_be_are_told() -> None:
    it = rig(nodes=3)
    it.sfus["s1"].streams = -5
    assert ("report-streams", "s1") in it.tick().faults


def test_the_mean_of_an_empty_pool_is_unknown() -> None:
    it = rig(nodes=3, settings=ScalingSettings(min_nodes=1))
    for sfu in it.sfus.values():
        sfu.silent = True
    decision = it.ticks(9)[-1]
    assert decision.figures.mean_load is None
    assert decision.figures.unknown == 3
    assert it.journal == []


@pytest.mark.parametrize("trouble", ["down", "partial"])
def test_a_pool_that_is_not_known_changes_nothing(trouble: str) -> None:
    it = rig(load=QUIET, nodes=5)
    it.ticks(19)
    setattr(it.pool, trouble, True)
    decision = it.tick()
    assert (decision.action, decision.reason) == (ScaleAction.HELD, "pool-unknown")
    it.load(HOT)
    it.ticks(10)
    assert it.journal == []


def test_a_tick_in_which_the_pool_is_not_known_ends_the_quiet_streak() -> None:
    it = rig(load=QUIET, nodes=5)
    it.ticks(19)
    it.pool.down = True
    it.tick()
    it.pool.down = False
    assert it.tick().figures.quiet_ticks == 1
    assert it.journal == []


def test_a_node_that_is_listed_twice_is_not_acted_on() -> None:
    it = rig(load=QUIET, nodes=5)
    it.pool.nodes["again"] = it.pool.nodes["s1"]
    decision = it.ticks(30)[-1]
    assert decision.reason == "pool-unknown"
    assert ("pool-twice", "s1") in decision.faults
    assert it.journal == []


def test_an_sfu_that_the_pool_does_not_list_takes_no_part() -> None:
    it = rig(load=HOT, nodes=4)
    del it.pool.nodes["s3"]
    decision = it.tick()
    assert (decision.figures.nodes, decision.figures.capacity) == (3, 3)
    assert ("sfu-unlisted", "s3") in decision.faults
