"""What a platform calls failed is swept up late and one by one, and not while its SFU reports (A8)."""

from __future__ import annotations

from control.core.scaling_settings import ScalingSettings
from shared.scaling_records import ScaleAction
from tests.fakes.scaling_worlds import HOT, WARM, draining, rig


def test_failed_nodes_are_swept_up_one_a_tick() -> None:
    it = rig(load=WARM, nodes=6)
    for node in ("s0", "s1", "s2"):
        it.fail(node)
    for swept in (1, 2, 3):
        it.tick()
        assert len(it.done("sweep")) == swept
    assert list(it.pool.nodes) == ["s3", "s4", "s5"]


def test_failed_nodes_are_not_swept_up_before_their_replacements_are_there() -> None:
    """A platform may count them until then: ended at once they would take the whole pool with them."""
    it = rig(load=WARM, nodes=5, settings=ScalingSettings(min_nodes=5))
    it.tick()
    for node in list(it.pool.nodes):
        it.fail(node)
    for _ in range(80):
        it.load(WARM)
        it.tick()
        assert len(it.pool.nodes) >= 5
    assert it.tick().figures.capacity == 5
    assert len(it.done("sweep")) == len(it.done("launch")) == 5


def test_a_failed_node_makes_room_for_its_replacement_where_the_floor_is_the_maximum() -> None:
    it = rig(load=WARM, nodes=3, settings=ScalingSettings(min_nodes=3, max_nodes=3))
    it.tick()
    it.fail("s0")
    it.fail("s1")
    for _ in range(30):
        it.load(WARM)
        it.tick()
        assert 2 <= len(it.pool.nodes) <= 3
    assert [each.what for each in it.journal] == ["sweep", "launch", "sweep", "launch"]
    assert it.tick().figures.capacity == 3


def test_a_failed_node_that_can_not_be_ended_holds_up_no_other() -> None:
    it = rig(load=WARM, nodes=6)
    it.fail("s0")
    it.fail("s1")
    it.pool.stuck = {"s0"}
    it.ticks(4)
    assert [each.node for each in it.done("sweep")] == ["s1"]


def test_nothing_is_swept_up_while_the_pool_is_not_known() -> None:
    it = rig(load=WARM, nodes=6)
    it.fail("s1")
    it.pool.partial = True
    it.ticks(3)
    assert it.journal == []


def test_a_removal_goes_on_though_the_platform_calls_its_node_failed_while_it_reports() -> None:
    it, node = draining()
    it.tick()
    it.call_failed(node)
    it.ticks(60)
    assert it.done("terminate") == it.done("sweep") == []
    assert it.done("renew"), "its cordon must not lapse"
    it.sfus[node].empty()
    it.ticks(2)
    assert node not in it.pool.nodes
    assert it.recorded()[-1] == ("terminated", "empty")


def test_a_launch_that_reports_is_not_given_up_for_what_the_platform_says() -> None:
    it = rig(load=HOT)
    it.until(ScaleAction.SCALE_OUT)
    node = it.done("launch")[0].node
    it.call_failed(node)
    it.load(WARM)
    it.ticks(3)
    assert it.state.launch is not None
    it.call_failed(node, failed=False)
    it.tick()
    assert ("launched", "capacity") in it.recorded()
