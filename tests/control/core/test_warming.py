"""A launched node on its way: no capacity before it is warmed up, and until then only the launch's (A5, A8)."""

from __future__ import annotations

import msgspec
import pytest

from control.core.autoscaler.decide import confirm_launch
from control.core.autoscaler.launches import MOST_NEWCOMERS, carry_on_launch
from control.core.autoscaler.progress import TickProgress
from control.core.autoscaler.world import Moment, join
from control.core.scaling_settings import ScalingSettings
from shared.scaling_records import Launching, Newcomer, ScaleAction, ScalingState
from tests.fakes.scaling_worlds import HOT, WARM, rig, warming


def test_a_node_that_reports_and_is_not_warmed_up_is_not_in_the_mean() -> None:
    it, node = warming()
    figures = it.tick().figures
    assert (figures.capacity, figures.warming) == (3, 1)
    assert figures.mean_load == pytest.approx(HOT)
    it.sfus[node].warmed_up = True
    figures = it.tick().figures
    assert (figures.capacity, figures.warming) == (4, 0)
    assert figures.mean_load is not None
    assert figures.mean_load < HOT


def test_a_confirmed_launch_has_its_names_and_starts_the_cooldown() -> None:
    """The pool has changed now, not when it was decided; the call may have taken minutes."""
    before = ScalingState(cooldown_left_s=1.0, launch=Launching(request="r", since_at=5.0))
    after = confirm_launch(before, "r", node="n", sfu="s", settings=ScalingSettings())
    assert after.cooldown_left_s == 300.0
    assert after.launch == Launching(request="r", node="n", sfu="s", since_at=5.0)


def test_a_person_who_cordons_a_warming_node_takes_it_over() -> None:
    it, node = warming()
    it.tick()
    it.sfus[node].by = "kim"
    it.tick()
    assert ("cancelled", "cordoned-while-warming") in it.recorded()
    assert it.state.launch is None
    it.load(WARM)
    it.ticks(14)
    assert it.done("terminate") == []
    assert it.sfus[node].by == "kim"


def test_a_launch_whose_record_vanished_is_not_ended_when_it_is_given_up() -> None:
    """A router knew it, so players may have been sent there: unknown is not empty."""
    it, node = warming()
    it.tick()
    it.sfus[node].registered = False
    it.load(WARM)
    it.ticks(14)
    assert ("launch-given-up", "timed-out") in it.recorded()
    assert [removal.node for removal in it.state.removals] == [node]
    assert it.done("terminate") == []
    it.sfus[node].registered = True
    it.ticks(3)
    assert [each.what for each in it.journal if each.node == node] == ["launch", "cordon", "terminate"]


def test_a_launch_that_no_router_ever_knew_is_ended_when_it_is_given_up() -> None:
    it, node = warming(registered=False)
    it.load(WARM)
    it.ticks(14)
    assert ("terminated", "never-registered") in it.recorded()
    assert [each.what for each in it.journal if each.node == node] == ["launch", "terminate"]


def test_a_launch_that_was_given_up_is_never_taken_back() -> None:
    """It did not become capacity when it was time, so it is no help against load now."""
    it, node = warming()
    it.tick()
    it.sfus[node].players = 1  # so that it is not ended at once
    for _ in range(25):
        it.load(HOT)
        it.tick()
        it.pool.launches_warm = True
    assert ("launch-given-up", "timed-out") in it.recorded()
    assert [removal.node for removal in it.state.removals] == [node]
    assert not [each for each in it.recorded() if each[0] == ScaleAction.CANCELLED]
    assert len(it.done("launch")) >= 2


def test_so_many_newcomers_are_followed_and_the_oldest_is_let_go() -> None:
    it = rig(load=HOT)
    it.until(ScaleAction.SCALE_OUT)
    it.pass_time(30)
    waiting = tuple(Newcomer(sfu=f"n{number}") for number in range(MOST_NEWCOMERS))
    before = TickProgress(state=msgspec.structs.replace(it.state, newcomers=waiting))
    world = join(it.pool.listing(), it.leader.samples.reports(now=it.now))
    after = carry_on_launch(before, world, it.settings, Moment(now_at=it.now, elapsed_s=30.0)).state
    assert [each.sfu for each in after.newcomers] == [*(each.sfu for each in waiting[1:]), it.done("launch")[0].node]


def test_a_newcomer_is_followed_until_it_has_a_room_or_is_certainly_gone() -> None:
    it = rig(load=WARM)
    it.state = ScalingState(newcomers=(Newcomer(sfu="s0"), Newcomer(sfu="gone")))
    it.pool.partial = True  # the listing leaves out s0
    it.tick()
    assert [each.sfu for each in it.state.newcomers] == ["s0", "gone"]
    it.pool.partial = False
    it.tick()
    assert it.state.newcomers == ()


def test_a_newcomer_that_no_router_knows_for_a_while_is_not_gone() -> None:
    """Its first room is still to come, and to be told."""
    it = rig(load=WARM)
    it.state = ScalingState(newcomers=(Newcomer(sfu="s0"),))
    it.sfus["s0"].registered = False
    it.ticks(2)
    assert [each.sfu for each in it.state.newcomers] == ["s0"]
    it.sfus["s0"].registered = True
    it.tick()
    assert it.state.newcomers == ()
