"""What a new leader goes on with, repeats and starts again (A7)."""

from __future__ import annotations

from control.core.autoscaler.effects import LeaseCordon
from shared.scaling_records import ScaleAction
from tests.fakes.scaling_worlds import HOT, QUIET, WARM, draining, rig


def test_a_new_leader_goes_on_with_streaks_and_cooldown() -> None:
    it = rig(load=HOT)
    it.ticks(3)
    it.new_leader("b")
    it.pass_time(15)
    assert it.tick().action is ScaleAction.SCALE_OUT


def test_a_new_leader_does_what_the_last_one_only_decided() -> None:
    it = rig(load=HOT)
    it.ticks(3)
    it.tick(crash_after=0)
    assert it.done("launch") == []
    it.new_leader("b")
    it.tick()
    assert len(it.done("launch")) == 1
    assert it.recorded().count(("scale-out", "hot")) == 1


def test_a_new_leader_does_not_repeat_what_the_last_one_did_but_could_not_say() -> None:
    it = rig(load=HOT)
    it.ticks(3)
    it.pool.loses_answers = True
    it.tick()
    it.pool.loses_answers = False
    it.new_leader("b")
    it.load(WARM)
    it.ticks(3)
    assert len(it.done("launch")) == 1


def test_a_new_leader_renews_our_cordons_at_once() -> None:
    it, _ = draining()
    it.tick()
    it.new_leader("b")
    assert any(isinstance(each, LeaseCordon) and each.renewal for each in it.tick().effects)


def test_ticks_that_are_far_apart_are_not_in_a_row() -> None:
    it = rig(load=HOT)
    it.ticks(3)
    it.pass_time(600)
    assert it.tick().figures.out_hits == 1


def test_a_late_first_tick_of_a_new_leader_starts_the_streaks_again() -> None:
    it = rig(load=QUIET)
    it.ticks(19)
    it.new_leader("b")
    it.pass_time(600)
    assert it.tick().figures.quiet_ticks == 1


def test_a_clock_that_went_back_between_two_leaders_starts_the_streaks_again() -> None:
    it = rig(load=QUIET)
    it.ticks(19)
    it.new_leader("b")
    it.clock_error_s = -3600.0
    it.pass_time(1.0)
    assert it.tick().figures.quiet_ticks == 1
