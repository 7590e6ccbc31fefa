"""A pool without capacity gets one node, and waits for what may be capacity (A4, A5)."""

from __future__ import annotations

import pytest

from control.core.scaling_settings import ScalingSettings
from shared.scaling_records import ScaleAction
from tests.fakes.scaling_worlds import WARM, draining, rig


def test_a_pool_of_which_people_have_cordoned_every_node_gets_one_more() -> None:
    it = rig(load=WARM, nodes=3)
    for sfu in it.sfus.values():
        sfu.by = "kim"
    decision = it.tick()
    assert (decision.action, decision.reason) == (ScaleAction.SCALE_OUT, "no-capacity")
    it.load(WARM)
    assert it.ticks(15)[-1].figures.capacity == 1
    assert len(it.done("launch")) == 1, "enough for as long as it isn't hot"


def test_without_capacity_another_launch_waits_for_cooldown_and_maximum_as_any() -> None:
    it = rig(load=WARM, nodes=3, settings=ScalingSettings(max_nodes=5))
    for _ in range(60):
        for sfu in it.sfus.values():
            sfu.by = "kim"
        it.tick()
    first, second = it.done("launch")
    assert second.at - first.at >= 300
    assert it.state.held == "at-the-maximum"


@pytest.mark.parametrize("field", [{"cpu": -1.0}, {"silent": True}, {"warmed_up": False}])
def test_a_node_that_may_be_capacity_or_is_about_to_be_is_waited_for(field: dict[str, float]) -> None:
    it = rig(load=WARM, nodes=3)
    it.tick()
    for name, value in field.items():
        setattr(it.sfus["s0"], name, value)
    it.sfus["s1"].by = it.sfus["s2"].by = "kim"
    it.ticks(10)
    assert it.journal == []
    decision = it.until(ScaleAction.SCALE_OUT, within=3)
    assert decision.figures.lost == 1, "but not for ever"


def test_without_capacity_a_removal_is_taken_back_first() -> None:
    it, node = draining()
    for sfu in it.sfus.values():
        sfu.by = sfu.by or "kim"
    decision = it.until(ScaleAction.CANCELLED, within=12)
    assert decision.reason == "no-capacity"
    assert it.sfus[node].by == ""
    assert it.done("launch") == []
