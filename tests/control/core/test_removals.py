"""Removals under way: what ends one, what takes it back, and what is no reason to do either (A6, A11)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from control.core.autoscaler.effects import LeaseCordon, PreferVictim, TakeBack, Terminate
from control.core.pool import NodePhase
from shared.scaling_records import AUTOSCALER, RemovalStage, ScaleAction
from tests.fakes.scaling_rig import Rig
from tests.fakes.scaling_worlds import HOT, QUIET, WARM, draining, rig


def ending() -> tuple[Rig, str]:
    """A rig of which one node is empty and has been told to end, which it does not do yet; and which."""
    it, node = draining()
    it.tick()
    it.pool.stuck = {node}
    it.sfus[node].empty()
    it.tick()
    assert [removal.stage for removal in it.state.removals] == [RemovalStage.ENDING]
    return it, node


def removing(it: Rig) -> list[str]:
    return [removal.node for removal in it.state.removals]


# --- what is not seen is not gone ---


def test_a_draining_node_whose_record_vanished_is_waited_for() -> None:
    """Routers forget an SFU that they do not hear, and players may still be on it: unknown is not empty."""
    it, node = draining()
    it.tick()
    it.sfus[node].registered = False
    it.ticks(30)
    assert removing(it) == [node]
    assert it.done("terminate") == []
    it.sfus[node].registered = True
    it.sfus[node].empty()
    it.ticks(3)
    assert [each.node for each in it.done("terminate")] == [node]


@pytest.mark.parametrize("trouble", ["partial", "down"])
def test_a_removal_that_an_incomplete_listing_misses_is_not_over(trouble: str) -> None:
    it, node = draining(node="s0")  # which the listing leaves out
    it.tick()
    it.sfus[node].registered = False
    setattr(it.pool, trouble, True)
    it.ticks(3)
    assert removing(it) == [node]
    assert ("terminated", "ended-by-itself") not in it.recorded()


def test_a_removal_that_a_complete_listing_misses_is_over_and_said_once() -> None:
    it, node = draining()
    it.tick()
    del it.pool.nodes[node], it.sfus[node]
    it.ticks(3)
    assert removing(it) == []
    assert it.recorded().count(("terminated", "ended-by-itself")) == 1


def test_a_removal_that_was_told_to_end_and_is_gone_is_not_told_of_again() -> None:
    it, node = ending()
    del it.pool.nodes[node], it.sfus[node]
    it.ticks(3)
    assert removing(it) == []
    assert [each for each in it.recorded() if each[0] == "terminated"] == [("terminated", "empty")]


# --- the cordon ---


def test_each_order_of_a_cordon_that_did_not_arrive_starts_the_cooldown_again() -> None:
    """The pool changes when it arrives, which is now at the earliest."""
    it = rig(load=QUIET)
    it.deaf_store = True
    it.until(ScaleAction.SCALE_IN)
    for _ in range(3):
        tick = it.tick()
        assert tick.effects == (PreferVictim(node="s0"), LeaseCordon(sfu="s0", node="s0", streams=200))
        assert it.state.cooldown_left_s == it.settings.cooldown_s


def test_a_cordon_that_never_arrives_is_given_up_in_time_and_taken_back_in_case_it_comes_late() -> None:
    it = rig(load=QUIET)
    it.deaf_store = True
    it.until(ScaleAction.SCALE_IN)
    node = removing(it)[0]
    ticks = it.ticks(10)
    assert not any(isinstance(effect, TakeBack) for tick in ticks[:9] for effect in tick.effects)
    assert ticks[9].effects == (TakeBack(sfu=node, node=node),)
    assert it.recorded()[-1] == ("cancelled", "never-cordoned")


def test_a_renewal_does_not_tell_the_platform_again() -> None:
    it, node = draining()
    it.tick()
    it.new_leader("b")
    assert it.tick().effects == (LeaseCordon(sfu=node, node=node, streams=1, renewal=True),)


def test_a_cordon_that_was_seen_while_the_pool_was_not_known_was_seen() -> None:
    """So a person who takes it off then has the last word."""
    it, node = draining()
    it.sfus[node].empty()
    it.pool.down = True
    it.tick()
    assert [removal.stage for removal in it.state.removals] == [RemovalStage.DRAINING]
    it.sfus[node].by = ""
    it.ticks(2)
    assert it.recorded()[-1] == ("cancelled", "no-longer-cordoned")
    assert it.sfus[node].by == ""


def test_a_node_that_has_a_player_again_drains_on() -> None:
    """It had a player before it heard our word: it drains as at any SIGTERM, and its cordon is renewed again."""
    it, node = ending()
    it.sfus[node].streams = 1
    assert not any(isinstance(effect, Terminate) for effect in it.tick().effects)
    assert [removal.stage for removal in it.state.removals] == [RemovalStage.DRAINING]
    it.sfus[node].empty()
    it.tick()
    assert it.recorded().count(("terminated", "empty")) == 2, "said again, because it is a second end"


def test_a_node_that_was_told_to_end_and_starts_again_is_not_cordoned_again() -> None:
    """Its platform has restarted it, or the order got lost; it is left alone when it stays."""
    it, node = ending()
    left_s = it.state.cooldown_left_s
    it.sfus[node].by, it.sfus[node].incarnation = "", 2
    tick = it.tick()
    assert tick.effects == ()
    assert it.state.cooldown_left_s == left_s - it.settings.tick_s
    assert [removal.stage for removal in it.state.removals] == [RemovalStage.ENDING]
    it.ticks(9)
    assert it.recorded()[-1] == ("cancelled", "never-cordoned")


def test_a_cordon_that_arrived_lets_the_cooldown_pass() -> None:
    it, _ = draining()
    it.ticks(2)
    assert it.state.cooldown_left_s == it.settings.cooldown_s - 2 * it.settings.tick_s


def test_a_node_that_ends_at_our_word_drains_as_at_any_sigterm_and_is_not_taken_over() -> None:
    it, node = ending()
    it.sfus[node].by, it.sfus[node].sigterm = "", True
    it.ticks(2)
    assert removing(it) == [node]
    assert not [each for each in it.recorded() if each[0] == "cancelled"]
    it.pool.stuck = set()
    it.sfus[node].sigterm, it.sfus[node].by = False, AUTOSCALER
    it.ticks(2)
    assert node not in it.pool.nodes


def test_a_sigterm_before_our_word_is_not_our_drain() -> None:
    it, node = draining()
    it.tick()
    it.sfus[node].by, it.sfus[node].sigterm = "", True
    it.tick()
    assert ("cancelled", "taken-over") in it.recorded()
    assert removing(it) == []


def test_a_person_who_drains_a_node_that_we_have_told_to_end_takes_it_over() -> None:
    it, node = ending()
    it.sfus[node].by = "kim"
    it.tick()
    assert ("cancelled", "taken-over") in it.recorded()


# --- taking back ---


def test_a_removal_that_was_told_to_end_is_not_taken_back() -> None:
    """SIGTERM can't be taken back: an uncordon would be a node that is counted and about to go."""
    it, node = ending()
    for _ in range(20):
        it.load(HOT)
        it.tick()
    assert not [each for each in it.recorded() if each[0] == "cancelled"]
    assert it.sfus[node].by == AUTOSCALER
    assert it.done("launch")


def test_of_several_removals_the_newest_is_taken_back() -> None:
    it = rig(load=0.1, nodes=6)
    for _ in range(60):
        it.load(0.1)
        it.tick()
    before = removing(it)
    assert len(before) == 3
    it.load(WARM)
    it.ticks(10)
    it.load(HOT)
    it.until(ScaleAction.CANCELLED, within=5)
    assert removing(it) == before[:-1]


# --- orphans ---


def test_a_cordon_of_ours_that_belongs_to_no_removal_is_taken_back() -> None:
    it = rig(load=WARM)
    it.tick()
    it.sfus["s1"].by = AUTOSCALER
    it.tick()
    assert it.sfus["s1"].by == ""


def test_what_an_sfu_said_that_is_heard_no_more_is_no_orphan() -> None:
    """Its record may be older than all that was decided since; and no router would pass the command on."""
    it = rig(load=WARM)
    it.sfus["s1"].by = AUTOSCALER
    it.sfus["s1"].silent = True
    it.pass_time(1)
    assert not any(isinstance(effect, TakeBack) for tick in it.ticks(3) for effect in tick.effects)


# --- sweeping ---


def test_nothing_is_swept_up_while_no_sfu_is_heard() -> None:
    """Redis has lost what routers wrote, say: that no SFU has a record is no word against any node then."""
    it = rig(load=WARM, nodes=6)
    it.tick()
    it.call_failed("s0")
    for sfu in it.sfus.values():
        sfu.registered = False
    assert not any(isinstance(effect, Terminate) for tick in it.ticks(5) for effect in tick.effects)
    assert it.pool.nodes["s0"].phase is NodePhase.FAILED


@pytest.mark.parametrize("how", ["silent", "unknown", "told-to-end"])
def test_a_removal_that_could_take_no_work_again_is_not_taken_back_in_place_of_a_launch(how: str) -> None:
    """It would count as the change, and the hot pool would wait for a cooldown without one more node."""
    it, node = draining()
    it.ticks(12)
    if how == "told-to-end":
        it.pool.nodes[node] = replace(it.pool.nodes[node], phase=NodePhase.ENDING)
    else:
        it.sfus[node].silent, it.sfus[node].registered = how == "silent", how == "silent"
    it.load(HOT)
    assert it.until(ScaleAction.SCALE_OUT, within=5).reason == "hot"
    assert it.done("uncordon") == []
