"""The pool changes once a cooldown, whatever clocks do (A4)."""

from __future__ import annotations

import itertools

import pytest

from control.core.scaling_settings import ScalingSettings
from shared.scaling_records import ScaleAction
from tests.fakes.scaling_worlds import HOT, QUIET, rig


def test_the_pool_changes_once_a_cooldown() -> None:
    it = rig(load=HOT)
    for _ in range(40):
        it.load(HOT)
        it.tick()
    times = [each.at for each in it.done("launch")]
    assert len(times) >= 3
    assert all(later - earlier >= 300 for earlier, later in itertools.pairwise(times))


def test_the_cooldown_counts_for_taking_out_as_well() -> None:
    it = rig(load=QUIET, nodes=6, settings=ScalingSettings(scale_in_ticks=4))
    it.ticks(30)
    times = [each.at for each in it.done("cordon")]
    assert len(times) == 3
    assert all(later - earlier >= 300 for earlier, later in itertools.pairwise(times))


def test_a_shorter_cooldown_in_the_settings_holds_at_once() -> None:
    it = rig(load=HOT)
    it.until(ScaleAction.SCALE_OUT)
    it.settings = ScalingSettings(cooldown_s=60.0)
    assert it.tick().state.cooldown_left_s <= 30


@pytest.mark.parametrize("jump_s", [-86400.0, -400.0, 400.0, 86400.0])
def test_a_jump_of_redis_clock_ends_no_cooldown_and_no_launch(jump_s: float) -> None:
    it = rig(load=HOT)
    it.pool.launches_warm = False
    it.until(ScaleAction.SCALE_OUT)
    it.clock_error_s = jump_s
    it.load(HOT)
    it.ticks(8)
    assert len(it.done("launch")) == 1
    assert it.state.launch is not None
    assert it.state.cooldown_left_s > 0
