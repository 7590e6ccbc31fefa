"""Nothing is concluded of a fleet of which no SFU is heard; an empty pool is only new (invariant 4)."""

from __future__ import annotations

from shared.scaling_records import AUTOSCALER, ScaleAction
from tests.fakes.scaling_rig import Rig
from tests.fakes.scaling_worlds import HOT, QUIET, WARM, rig


def test_nothing_is_concluded_of_a_fleet_of_which_no_sfu_is_heard() -> None:
    """All routers are away, or Redis has lost what they wrote: players go on, and no new node would be heard either."""
    it = rig(load=HOT, nodes=5)
    it.ticks(2)
    it.routers_away = True
    decision = it.ticks(60)[-1]
    assert (decision.action, decision.reason) == (ScaleAction.HELD, "fleet-unheard")
    assert it.journal == []
    assert it.recorded() == [("held", "fleet-unheard")], "said once"


def test_a_fleet_whose_records_are_gone_is_not_heard_either() -> None:
    it = rig(load=HOT, nodes=5)
    it.ticks(2)
    for sfu in it.sfus.values():
        sfu.registered = False
    assert it.ticks(60)[-1].reason == "fleet-unheard"
    assert it.journal == []


def test_those_that_are_heard_again_later_than_others_are_not_lost() -> None:
    it = rig(load=WARM, nodes=5)
    it.ticks(2)
    for sfu in it.sfus.values():
        sfu.silent = True
    it.ticks(60)
    for sfu in it.sfus.values():
        sfu.silent = False
        it.tick()
    assert it.ticks(2)[-1].figures.capacity == 5
    assert it.journal == []


def test_a_launch_is_not_given_up_for_what_no_router_could_hear() -> None:
    it = rig(load=HOT)
    it.pool.launches_warm = False
    it.until(ScaleAction.SCALE_OUT)
    it.routers_away = True
    it.ticks(30)
    assert it.state.launch is not None
    assert len(it.journal) == 1


def test_an_empty_pool_is_new_and_gets_its_nodes() -> None:
    it = Rig(nodes=0)
    decision = it.tick()
    assert (decision.action, decision.reason) == (ScaleAction.SCALE_OUT, "under-the-floor")
    it.ticks(40)
    assert len(it.done("launch")) == 3


def test_an_empty_pool_whose_first_nodes_come_to_nothing_gets_others() -> None:
    it = Rig(nodes=0)
    it.pool.launches_warm = False
    it.until(ScaleAction.SCALE_OUT)
    it.ticks(15)
    it.fail(it.done("launch")[-1].node)
    it.ticks(25)
    assert [each.what for each in it.journal][:3] == ["launch", "terminate", "launch"]
    assert len(it.done("launch")) >= 3


def test_a_first_node_that_came_to_nothing_and_can_not_be_ended_holds_up_no_other() -> None:
    it = Rig(nodes=0)
    it.pool.launches_warm = False
    it.until(ScaleAction.SCALE_OUT)
    it.pool.stuck = {it.done("launch")[0].node}
    it.until(ScaleAction.SCALE_OUT)
    it.pool.launches_warm = True
    assert it.ticks(45)[-1].figures.capacity == 3


def test_an_sfu_that_could_not_hear_of_its_cordon_has_all_its_time_when_it_is_heard_again() -> None:
    it = rig(load=QUIET)
    it.deaf_store = True
    it.until(ScaleAction.SCALE_IN)
    it.deaf_store, it.routers_away = False, True
    it.ticks(15)
    it.routers_away = False
    it.ticks(2)
    assert it.sfus["s0"].by == AUTOSCALER
    assert ("cancelled", "never-cordoned") not in it.recorded()
