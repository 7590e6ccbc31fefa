"""When the pool grows: hot ticks of a window, the fullest part of each node, never over the maximum (A1, A3, A4)."""

from __future__ import annotations

import pytest

from control.core.scaling_settings import ScalingSettings
from shared.scaling_records import ScaleAction
from tests.fakes.scaling_worlds import HOT, WARM, rig


def test_four_hot_ticks_of_five_add_one_node() -> None:
    it = rig(load=HOT)
    assert [tick.action for tick in it.ticks(4)] == [*[ScaleAction.NONE] * 3, ScaleAction.SCALE_OUT]
    assert [tick.figures.out_hits for _, tick in it.decisions] == [1, 2, 3, 4]
    assert len(it.done("launch")) == 1


def test_one_tick_that_is_not_hot_does_not_start_the_count_again() -> None:
    it = rig(load=HOT)
    it.ticks(3)
    it.load(WARM)
    assert it.tick().action is ScaleAction.NONE
    it.load(HOT)
    assert it.tick().action is ScaleAction.SCALE_OUT


def test_two_ticks_of_five_that_are_not_hot_do() -> None:
    it = rig()
    for load in (HOT, WARM, WARM, HOT, HOT, HOT, WARM):
        it.load(load)
        assert it.tick().action is ScaleAction.NONE


def test_the_threshold_itself_is_hot() -> None:
    it = rig(load=0.65)
    it.until(ScaleAction.SCALE_OUT, within=4)


def test_load_is_the_fullest_part_of_each_node_and_not_the_fullest_mean() -> None:
    """Half the nodes full of streams and half full of CPU: each part's mean looks like room, and there is none."""
    it = rig(nodes=4)
    for number, sfu in enumerate(it.sfus.values()):
        sfu.streams, sfu.cpu = (700, 0.05) if number % 2 else (50, 0.6)
    figures = it.ticks(2)[-1].figures
    assert figures.mean_streams is not None
    assert figures.mean_streams < 0.4
    assert figures.mean_load is not None
    assert figures.mean_load > 0.69
    it.until(ScaleAction.SCALE_OUT, within=3)


def test_which_part_binds_is_said() -> None:
    it = rig(load=HOT)
    assert it.tick().figures.binding == "streams"
    for sfu in it.sfus.values():
        sfu.egress_bps = 690e6
    assert it.tick().figures.binding == "egress"


def test_a_warming_node_is_not_in_the_mean() -> None:
    it = rig(load=HOT, nodes=3)
    it.pool.launches_warm = False
    it.until(ScaleAction.SCALE_OUT)
    figures = it.tick().figures
    assert (figures.capacity, figures.warming) == (3, 1)
    assert figures.mean_load == pytest.approx(HOT)


def test_there_is_no_second_launch_before_the_first_is_capacity_or_given_up() -> None:
    it = rig(load=HOT)
    it.pool.launches_warm = False
    it.until(ScaleAction.SCALE_OUT)
    for tick in it.ticks(9):
        assert tick.action in (ScaleAction.NONE, ScaleAction.HELD)
    assert ("held", "launch-in-progress") in it.recorded()


def test_never_over_the_maximum() -> None:
    it = rig(load=HOT, settings=ScalingSettings(max_nodes=5))
    for _ in range(60):
        it.load(HOT)
        it.tick()
    assert len(it.pool.nodes) == 5
    assert it.state.held == "at-the-maximum"


def test_a_draining_node_counts_for_the_maximum() -> None:
    it = rig(load=HOT, nodes=5, settings=ScalingSettings(max_nodes=5))
    it.sfus["s0"].by = "kim"
    it.ticks(10)
    assert it.done("launch") == []
