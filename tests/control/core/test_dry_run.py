"""A dry run decides, records and plans nothing: neither a new removal nor the taking back of an old one (A9)."""

from __future__ import annotations

import msgspec

from control.core.autoscaler.decide import decide
from control.core.autoscaler.effects import TickDecision
from control.core.autoscaler.world import Moment, join
from shared.scaling_records import Launching, ScaleAction
from tests.fakes.scaling_rig import Rig
from tests.fakes.scaling_worlds import HOT, QUIET, draining, rig


def dry_until(it: Rig, action: ScaleAction, *, within: int) -> TickDecision:
    """Ticks of a dry run, none of which does anything, until one decides on that."""
    for _ in range(within):
        it.pass_time(it.settings.tick_s)
        world = join(it.pool.listing(), it.leader.samples.reports(now=it.now))
        moment = Moment(now_at=it.now, elapsed_s=it.settings.tick_s)
        decision = decide(world, it.state, it.settings, moment=moment, token=1, dry_run=True)
        it.leader.samples.next_tick()
        it.state = decision.state
        assert decision.effects == ()
        if decision.action is action:
            return decision
    raise AssertionError(f"no {action} within {within} ticks")


def test_a_removal_that_was_only_thought_of_is_not_planned() -> None:
    it = rig(load=QUIET)
    decision = dry_until(it, ScaleAction.SCALE_IN, within=20)
    assert decision.state.removals == ()
    assert [(record.action, record.dry_run) for record in decision.records] == [("scale-in", True)]
    assert decision.state.cooldown_left_s == it.settings.cooldown_s, "it waits as if it had been done"
    assert decision.state.quiet_ticks == 0


def test_a_removal_that_was_only_thought_back_goes_on() -> None:
    it, node = draining()
    it.tick()
    it.load(HOT)
    decision = dry_until(it, ScaleAction.CANCELLED, within=20)
    assert [removal.node for removal in decision.state.removals] == [node]


def test_a_launch_that_was_only_thought_of_is_not_planned() -> None:
    it = rig(load=HOT)
    decision = dry_until(it, ScaleAction.SCALE_OUT, within=4)
    assert decision.state.launch is None
    assert decision.state.hits == ()


def test_a_launch_that_was_under_way_stays_and_stands_in_no_decisions_way() -> None:
    it = rig(load=HOT)
    launch = Launching(request="r", node="x", sfu="x")
    it.state = msgspec.structs.replace(it.state, launch=launch)
    for _ in range(2):
        assert dry_until(it, ScaleAction.SCALE_OUT, within=11).state.launch == launch


def test_a_dry_run_decides_and_does_nothing() -> None:
    it = rig(load=HOT)
    state = it.state
    actions = []
    for tick in range(30):
        it.pass_time(30)
        world = join(it.pool.listing(), it.leader.samples.reports(now=it.now))
        moment = Moment(now_at=it.now, elapsed_s=30.0, first=tick == 0)
        decision = decide(world, state, it.settings, moment=moment, token=1, dry_run=True)
        state = decision.state
        actions.append(decision.action)
        assert decision.effects == ()
        assert state.launch is None
        assert all(record.dry_run for record in decision.records)
    # As often as if it had been done: once a cooldown.
    assert actions.count(ScaleAction.SCALE_OUT) == 3
