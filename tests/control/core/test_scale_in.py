"""When the pool shrinks: quiet ticks in a row, never under a floor, never into heat (A4, A6)."""

from __future__ import annotations

import pytest

from control.core.autoscaler.victim import mean_after
from control.core.autoscaler.world import join
from control.core.scaling_settings import ScalingSettings, read_settings
from shared.records import Capacities
from shared.scaling_records import ScaleAction
from tests.fakes.scaling_worlds import HOT, QUIET, WARM, draining, rig


def test_twenty_quiet_ticks_cordon_one_node() -> None:
    it = rig(load=QUIET)
    ticks = it.ticks(20)
    assert [tick.action for tick in ticks[:19]] == [ScaleAction.NONE] * 19
    assert ticks[19].action is ScaleAction.SCALE_IN
    assert [each.what for each in it.journal] == ["cordon"]


def test_one_tick_over_the_line_starts_the_quiet_count_again() -> None:
    it = rig(load=QUIET)
    it.ticks(19)
    it.load(0.31)
    it.tick()
    it.load(QUIET)
    assert all(tick.action is ScaleAction.NONE for tick in it.ticks(19))
    assert it.tick().action is ScaleAction.SCALE_IN


def test_the_threshold_itself_is_quiet() -> None:
    assert rig(load=0.30).ticks(20)[-1].action is ScaleAction.SCALE_IN


def test_the_victim_has_the_fewest_streams() -> None:
    it, node = draining()
    assert [each.node for each in it.done("cordon")] == [node]


def test_never_under_the_floor() -> None:
    it = rig(load=QUIET, nodes=3)
    it.ticks(30)
    assert it.journal == []
    assert it.state.held == "at-the-floor"


def test_the_mean_after_the_removal_is_looked_at_first() -> None:
    settings = ScalingSettings(scale_in_at=0.5, scale_out_at=0.65, min_nodes=1)
    it = rig(load=0.45, nodes=2, settings=settings)
    tick = it.ticks(20)[-1]
    assert (tick.action, tick.reason) == (ScaleAction.HELD, "would-be-hot")
    assert tick.figures.mean_after == pytest.approx(0.9)
    assert it.done("cordon") == []


def test_the_mean_after_bounds_what_a_small_node_would_take_from_a_big_one() -> None:
    it = rig(load=0.2, nodes=2, settings=ScalingSettings(min_nodes=1))
    it.sfus["s0"].capacities = Capacities(egress_mbps=700, streams=4000)
    it.sfus["s0"].streams = 800  # 0.2 of a big one, 0.8 of a small one
    it.tick()
    it.pass_time(1)
    world = join(it.pool.listing(), it.leader.samples.reports(now=it.now))
    assert mean_after(world.members, world.members[0]) == pytest.approx(0.2 + 0.8)
    assert mean_after(world.members[:1], world.members[0]) is None


def test_other_peoples_drains_are_no_capacity_and_no_loss() -> None:
    it = rig(load=WARM, nodes=3)
    it.sfus["s0"].by = "kim"
    figures = it.ticks(15)[-1].figures
    assert (figures.capacity, figures.draining_other, figures.draining_own) == (2, 1, 0)
    assert it.journal == []


def test_a_drain_by_an_operator_leaves_nothing_to_take_out() -> None:
    it = rig(load=QUIET, nodes=4)
    it.sfus["s0"].by = "kim"
    it.ticks(25)
    assert it.journal == []


def test_no_scale_in_while_a_launch_is_under_way() -> None:
    it = rig(load=HOT, settings=ScalingSettings(launch_timeout_s=900.0))
    it.pool.launches_warm = False
    it.until(ScaleAction.SCALE_OUT)
    it.load(QUIET)
    it.ticks(20)
    assert ("held", "launch-in-progress") in it.recorded()
    assert it.done("cordon") == []


def test_a_scheduled_floor_holds_by_redis_clock() -> None:
    text = '[[floors]]\nfrom = "00:00"\nto = "23:59:59"\nmin_nodes = 5'
    it = rig(load=QUIET, nodes=4, settings=read_settings(text))
    decision = it.tick()
    assert (decision.action, decision.reason) == (ScaleAction.SCALE_OUT, "under-the-floor")
    assert decision.figures.floor == 5
