"""Launches: once a request, given up when they never become capacity, and replaced (A5, A7, A8)."""

from __future__ import annotations

import pytest

from control.core.autoscaler.decide import decide
from control.core.autoscaler.effects import Launch
from control.core.autoscaler.world import Moment, World
from control.core.scaling_settings import ScalingSettings
from shared.scaling_records import ScaleAction, ScalingState
from tests.fakes.scaling_worlds import HOT, WARM, rig, warming


def test_a_launch_is_over_when_the_node_is_capacity() -> None:
    it = rig(load=HOT)
    it.until(ScaleAction.SCALE_OUT)
    it.ticks(2)
    assert it.state.launch is None
    assert ("launched", "capacity") in it.recorded()


def test_a_launch_whose_answer_got_lost_is_not_made_twice() -> None:
    it = rig(load=HOT)
    it.pool.loses_answers = True
    it.until(ScaleAction.SCALE_OUT)
    it.load(WARM)
    it.ticks(5)
    assert len(it.done("launch")) == 1
    assert it.state.launch is None


def test_the_cooldown_starts_again_when_a_node_whose_launch_seemed_to_fail_is_found() -> None:
    it = rig(load=HOT)
    it.pool.loses_answers = True
    it.until(ScaleAction.SCALE_OUT)
    it.tick()
    assert it.state.cooldown_left_s == it.settings.cooldown_s


def test_a_pool_that_fails_is_asked_for_the_same_node_again() -> None:
    it = rig(load=HOT)
    it.ticks(3)
    decision = it.tick(crash_after=0)  # as if the call had failed
    assert decision.action is ScaleAction.SCALE_OUT
    (again,) = [effect for effect in it.tick().effects if isinstance(effect, Launch)]
    assert again in decision.effects


def test_a_launch_that_never_warms_up_is_given_up_and_replaced() -> None:
    it = rig(load=HOT)
    it.pool.launches_warm = False
    it.until(ScaleAction.SCALE_OUT)
    first = it.done("launch")[0].node
    for _ in range(12):
        it.load(HOT)
        it.tick()
    assert ("launch-given-up", "timed-out") in it.recorded()
    assert [each.node for each in it.done("terminate")] == [first]
    assert len(it.done("launch")) == 2


def test_a_launch_that_registers_and_never_warms_up_is_cordoned_before_it_is_ended() -> None:
    it = rig(load=HOT)
    it.pool.launches_warm = False
    it.until(ScaleAction.SCALE_OUT)
    node = it.done("launch")[0].node
    it.sfus[node].registered = True
    it.ticks(14)
    mine = [each.what for each in it.journal if each.node == node]
    assert mine == ["launch", "cordon", "terminate"]


@pytest.mark.parametrize("when", ["between two ticks", "while the pool is away", "after it was given up"])
def test_a_launch_that_a_router_has_known_for_a_moment_is_not_ended_unheard(when: str) -> None:
    """A router may have sent players there meanwhile."""
    it = rig(load=HOT)
    it.pool.launches_warm = False
    it.until(ScaleAction.SCALE_OUT)
    node = it.done("launch")[0].node
    it.load(WARM)
    if when == "after it was given up":
        it.pool.stuck.add(node)
        it.ticks(12)
        assert [each.registered for each in it.state.removals] == [False]
    it.sfus[node].registered = True
    if when == "while the pool is away":
        it.pool.down = True
        it.tick()
        it.pool.down = False
    else:
        it.pass_time(2.0)
    it.sfus[node].registered = False
    it.pool.stuck.clear()
    it.ticks(14)
    assert it.done("terminate") == []
    assert [(each.node, each.registered) for each in it.state.removals] == [(node, True)]


def test_a_launch_that_fails_is_replaced() -> None:
    it = rig(load=HOT)
    it.pool.launches_warm = False
    it.until(ScaleAction.SCALE_OUT)
    it.fail(it.done("launch")[0].node)
    for _ in range(12):
        it.load(HOT)
        it.tick()
    assert ("launch-given-up", "failed") in it.recorded()
    assert len(it.done("launch")) == 2


def test_a_lost_node_under_the_floor_is_replaced() -> None:
    it = rig(load=WARM, nodes=3)
    it.tick()
    it.fail("s0")
    decision = it.tick()
    assert (decision.action, decision.reason) == (ScaleAction.SCALE_OUT, "under-the-floor")
    it.tick()
    assert [each.what for each in it.journal] == ["launch", "sweep"]


def test_a_node_that_is_silent_for_longer_than_a_launch_may_take_is_replaced_and_not_ended() -> None:
    it = rig(load=WARM, nodes=3)
    it.tick()
    it.sfus["s0"].silent = True
    it.ticks(9)
    assert it.journal == []
    it.ticks(5)
    assert [each.what for each in it.journal] == ["launch"]
    assert it.decisions[-1][1].figures.lost == 1


def test_two_launches_within_a_second_are_two_nodes() -> None:
    settings = ScalingSettings(tick_s=0.2, cooldown_s=0.2, scale_out_hits=1, scale_out_window=1)
    it = rig(load=HOT, settings=settings)
    for _ in range(10):
        it.load(HOT)
        it.tick()
    asked = [decision for _, decision in it.decisions if decision.action is ScaleAction.SCALE_OUT]
    assert len(asked) >= 3
    assert len({each.request for each in it.done("launch")}) == len(asked)


def test_a_launch_that_the_pool_does_not_list_yet_counts_for_the_floor() -> None:
    it = rig(load=WARM, nodes=2)
    assert it.tick(crash_after=0).reason == "under-the-floor"
    decision = it.tick(crash_after=0)
    assert (decision.action, decision.reason) == (ScaleAction.NONE, "within-limits")
    assert [each for each in it.recorded() if each[0] == "held"] == []


def test_a_launch_is_neither_asked_for_nor_late_while_the_pool_is_not_known() -> None:
    it = rig(load=HOT)
    it.ticks(3)
    it.tick(crash_after=0)
    it.pool.partial = True
    assert not any(isinstance(effect, Launch) for tick in it.ticks(15) for effect in tick.effects)
    assert it.state.launch is not None
    assert it.state.launch.waited_s == 0.0


def test_a_launch_that_the_platform_calls_failed_is_no_removal() -> None:
    """Nothing of it runs: there is nothing to drain, and what is listed is swept up."""
    it, node = warming(registered=False)
    it.fail(node)
    it.tick()
    assert ("launch-given-up", "failed") in it.recorded()
    assert it.state.removals == ()
    it.ticks(2)
    assert ("terminated", "ended-by-itself") not in it.recorded()
    assert node not in it.pool.nodes


def test_a_request_is_like_no_other_of_any_leader_at_any_time() -> None:
    """Not over leaders, nor within a second, nor when Redis has lost the state and ticks are counted from 0 again."""
    requests = set()
    for token, now_at, tick in ((1, 50.0, 0), (2, 50.0, 0), (1, 80.0, 0), (1, 50.0, 1)):
        moment = Moment(now_at=now_at, elapsed_s=30.0)
        world = World(members=(), certain=True)
        decision = decide(world, ScalingState(tick=tick), ScalingSettings(), moment=moment, token=token)
        requests |= {effect.request for effect in decision.effects if isinstance(effect, Launch)}
    assert len(requests) == 4
