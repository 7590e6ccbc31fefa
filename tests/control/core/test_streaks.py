"""Streaks: what starts them again, and whose clock tells how far apart two ticks are (A3, A4)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from control.core.autoscaler.progress import TickProgress
from control.core.autoscaler.streaks import changed, count_tick
from control.core.autoscaler.world import Moment
from control.core.scaling_settings import ScalingSettings
from shared.scaling_records import ScaleAction, ScalingState
from tests.fakes.scaling_worlds import HOT, QUIET, WARM, draining, rig, warming


def test_a_change_of_the_pool_starts_everything_again() -> None:
    before = TickProgress(state=ScalingState(hits=(True, True), quiet_ticks=7, cooldown_left_s=1.0))
    after = changed(before, ScalingSettings(), Moment(now_at=99.0, elapsed_s=30.0)).state
    assert (after.hits, after.quiet_ticks, after.cooldown_left_s, after.last_change_at) == ((), 0, 300.0, 99.0)


def test_what_was_seen_before_a_launch_says_nothing_about_the_new_pool() -> None:
    it = rig(load=HOT)
    it.until(ScaleAction.SCALE_OUT)
    assert it.state.hits == ()
    it.load(HOT)
    assert it.tick().figures.out_hits == 1


def test_what_was_seen_before_a_removal_says_nothing_about_the_new_pool() -> None:
    it, _ = draining()
    assert it.state.quiet_ticks == 0
    assert it.tick().figures.quiet_ticks == 1


def test_what_was_seen_before_a_removal_was_taken_back_says_nothing_either() -> None:
    it, _ = draining()
    it.ticks(10)
    it.load(HOT)
    it.until(ScaleAction.CANCELLED, within=5)
    assert it.state.hits == ()


@pytest.mark.parametrize("jump_s", [-86_400.0, 86_400.0])
def test_a_jump_of_redis_clock_within_a_term_interrupts_no_streak(jump_s: float) -> None:
    """A leader's own clock has seen the ticks follow each other."""
    it = rig(load=HOT)
    it.ticks(3)
    it.clock_error_s = jump_s
    assert it.tick().action is ScaleAction.SCALE_OUT


def test_a_jump_of_redis_clock_within_a_term_hides_no_gap() -> None:
    it = rig(load=QUIET)
    it.ticks(10)
    it.pass_time(600)
    it.clock_error_s = -600.0  # by Redis' clock no more than a tick has passed
    assert it.tick().figures.quiet_ticks == 1


@pytest.mark.parametrize(("elapsed_s", "hits"), [(110.0, (True, True)), (110.1, (True,)), (-0.1, (True,))])
def test_three_ticks_and_a_fail_over_are_still_in_a_row(elapsed_s: float, hits: tuple[bool, ...]) -> None:
    before = TickProgress(state=ScalingState(tick=1, hits=(True,)))
    moment = Moment(now_at=0.0, elapsed_s=elapsed_s)
    after = count_tick(before, 0.9, blind=False, settings=ScalingSettings(), moment=moment)
    assert after.state.hits == hits


def test_a_tick_in_which_the_pool_is_not_known_takes_its_place_in_the_window() -> None:
    """Hot ticks from before a platform's outage are not among the last five."""
    it = rig(load=HOT)
    it.ticks(3)
    it.pool.down = True
    assert it.tick().figures.out_hits == 3
    it.ticks(2)
    it.pool.down = False
    decision = it.tick()
    assert (decision.action, decision.figures.out_hits) == (ScaleAction.NONE, 2)


@pytest.mark.parametrize(("tick_s", "lease_s"), [(30.0, 15.0), (5.0, 60.0), (0.2, 0.5), (1.0, 600.0)])
def test_streaks_go_on_after_the_longest_fail_over(tick_s: float, lease_s: float) -> None:
    """The leader died just before its tick; another asks for the lease each third of it, and looks for a whole tick."""
    settings = replace(ScalingSettings(), tick_s=tick_s, lease_s=lease_s)
    took_s = tick_s + lease_s + lease_s / 3 + settings.sample_s + tick_s
    before = TickProgress(state=ScalingState(tick=9, ticked_at=1000.0, hits=(True, True, True)))
    moment = Moment(now_at=1000.0 + took_s, elapsed_s=0.0, first=True)
    assert len(count_tick(before, 0.9, blind=False, settings=settings, moment=moment).state.hits) == 4


def test_a_node_that_warmed_up_for_longer_than_the_cooldown_is_not_followed_by_one_too_many() -> None:
    """The hot ticks of its warm-up are over once it counts."""
    it, node = warming(settings=ScalingSettings(launch_timeout_s=900.0))
    for _ in range(14):
        it.load(HOT)
        it.tick()
    assert it.state.cooldown_left_s == 0
    it.sfus[node].warmed_up = True
    it.load(WARM)
    decision = it.tick()
    assert (decision.action, decision.figures.out_hits) == (ScaleAction.NONE, 4)


def test_a_pool_that_a_node_more_has_not_helped_gets_the_next_at_once() -> None:
    it, node = warming(settings=ScalingSettings(launch_timeout_s=900.0))
    for _ in range(14):
        it.load(HOT)
        it.tick()
    it.sfus[node].warmed_up = True
    it.load(HOT)
    assert it.tick().action is ScaleAction.SCALE_OUT
