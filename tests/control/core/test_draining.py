"""A node that drains at the autoscaler's word: renewed, ended at zero, and anybody's to take over (A6, A11)."""

from __future__ import annotations

import itertools

import pytest

from control.core.autoscaler.effects import Terminate
from shared.scaling_records import AUTOSCALER, RemovalStage, ScaleAction
from tests.fakes.scaling_worlds import HOT, QUIET, draining, rig


def test_a_draining_node_is_ended_at_zero_streams_and_not_before() -> None:
    it, node = draining()
    it.ticks(50)
    assert it.done("terminate") == []
    it.sfus[node].empty()
    it.ticks(2)
    assert [(each.node, each.streams) for each in it.done("terminate")] == [(node, 0)]
    assert it.state.removals == ()


@pytest.mark.parametrize(
    "field", [{"streams": 1}, {"players": 1}, {"egress_bps": 800.0}, {"silent": True}, {"cpu": -1.0}]
)
def test_a_node_of_which_anything_is_left_or_unknown_is_not_ended(field: dict[str, float]) -> None:
    it, node = draining()
    it.sfus[node].empty()
    for name, value in field.items():
        setattr(it.sfus[node], name, value)
    it.ticks(5)
    assert it.done("terminate") == []


def test_an_empty_node_is_not_ended_while_the_pool_is_not_known() -> None:
    it, node = draining()
    it.tick()
    it.sfus[node].empty()
    it.pool.partial = True
    assert not any(isinstance(effect, Terminate) for tick in it.ticks(3) for effect in tick.effects)
    it.pool.partial = False
    it.tick()
    assert [each.node for each in it.done("terminate")] == [node]


def test_the_cordon_is_renewed_in_good_time_while_the_node_drains() -> None:
    it, _ = draining()
    it.ticks(300)  # 9000 s: the lease is 3600
    times = [it.done("cordon")[0].at, *(each.at for each in it.done("renew")), it.now]
    assert max(later - earlier for earlier, later in itertools.pairwise(times)) < 1800


def test_the_cordon_is_renewed_though_the_pool_does_not_answer() -> None:
    it, _ = draining()
    it.pool.down = True
    it.ticks(60)
    assert it.done("renew")


def test_a_cordon_that_did_not_arrive_is_ordered_again() -> None:
    it = rig(load=QUIET)
    it.deaf_store = True
    it.until(ScaleAction.SCALE_IN)
    it.ticks(2)
    it.deaf_store = False
    it.tick()
    assert len(it.done("cordon")) == 1


def test_a_node_that_never_follows_is_left_alone() -> None:
    it = rig(load=QUIET)
    for sfu in it.sfus.values():
        sfu.deaf = True
    it.until(ScaleAction.SCALE_IN)
    it.ticks(12)
    assert ("cancelled", "never-cordoned") in it.recorded()
    assert it.state.removals == ()


def test_a_person_who_uncordons_the_node_has_the_last_word() -> None:
    it, node = draining()
    it.tick()
    it.sfus[node].by = ""
    it.tick()
    assert ("cancelled", "no-longer-cordoned") in it.recorded()
    assert it.sfus[node].by == ""
    assert it.done("renew") == []


def test_a_person_who_uncordons_it_before_the_next_tick_has_the_last_word_too() -> None:
    it, node = draining()
    it.sfus[node].by = ""
    it.tick()
    assert ("cancelled", "no-longer-cordoned") in it.recorded()
    assert it.sfus[node].by == ""


def test_what_an_sfu_said_that_is_heard_no_more_takes_no_removal_back() -> None:
    it, node = draining()
    it.sfus[node].silent = True
    it.ticks(5)
    it.sfus[node].by = ""  # an old record, say, that a router wrote again
    it.ticks(3)
    assert not [each for each in it.recorded() if each[0] == "cancelled"]
    assert [removal.node for removal in it.state.removals] == [node]


def test_a_person_who_drains_the_node_takes_it_over() -> None:
    it, node = draining()
    it.tick()
    it.sfus[node].by = "kim"
    it.sfus[node].empty()
    it.tick()
    assert ("cancelled", "taken-over") in it.recorded()
    it.ticks(3)
    assert it.done("terminate") == []


def test_load_that_comes_back_takes_the_drain_back_before_anything_is_launched() -> None:
    it, node = draining()
    it.ticks(10)
    it.load(HOT)
    it.until(ScaleAction.CANCELLED, within=5)
    assert it.sfus[node].by == ""
    assert it.done("launch") == []
    assert it.state.cooldown_left_s == 300


def test_an_uncordon_that_did_not_arrive_is_ordered_again() -> None:
    it, node = draining()
    it.ticks(10)
    it.load(HOT)
    it.deaf_store = True
    it.until(ScaleAction.CANCELLED, within=5)
    it.deaf_store = False
    assert it.sfus[node].by == AUTOSCALER
    it.tick()
    assert it.sfus[node].by == ""


def test_a_terminate_that_did_not_arrive_is_repeated() -> None:
    it, node = draining()
    it.tick()
    it.sfus[node].empty()
    it.pass_time(1)
    decision = it.tick(crash_after=0)
    assert any(isinstance(effect, Terminate) for effect in decision.effects)
    assert it.state.removals[0].stage == RemovalStage.ENDING
    it.tick()
    assert len(it.done("terminate")) == 1
    assert it.recorded().count(("terminated", "empty")) == 1


def test_several_of_our_drains_go_on_side_by_side() -> None:
    it = rig(load=0.1, nodes=6)
    for _ in range(60):
        it.load(0.1)
        it.tick()
    assert len(it.done("cordon")) == 3
    assert it.tick().figures.draining_own == 3
