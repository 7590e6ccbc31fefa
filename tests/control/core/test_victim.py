"""Who goes, and how full it would leave the others (A6)."""

from __future__ import annotations

import pytest

from control.core.autoscaler.samples import NodeReport
from control.core.autoscaler.victim import choose_victim, mean_after
from control.core.autoscaler.world import Member
from control.core.pool import NodePhase, PoolNode
from control.core.scaling_settings import ScalingSettings
from shared.load import Ceilings, Load
from shared.records import Capacities, LoadParts, SfuState
from shared.scaling_records import ScaleAction
from tests.fakes.scaling_worlds import QUIET, rig

IDLE = Load(egress=0.0, streams=0.0, cpu=0.0)


def ceilings(*, egress: float = 1.0, streams: float = 1.0, guard: float = 1.0) -> Ceilings:
    """A common node's, times these."""
    return Ceilings(egress_bps=800e6 * egress, streams=round(1000 * streams), cpu_guard=0.8 * guard)


def member(
    name: str,
    *,
    load: Load = IDLE,
    ceilings: Ceilings = ceilings(),  # noqa: B008 - frozen
    cores: int = 1,
    streams: int = 100,
    players: int | None = 10,
) -> Member:
    state = SfuState(
        address=f"ws://{name}",
        sfu=name,
        players=players,
        load_parts=LoadParts(streams=streams),
        capacities=Capacities(cores=cores),
    )
    report = NodeReport(state=state, load=load, ceilings=ceilings)
    return Member(node=PoolNode(node=name, sfu=name, phase=NodePhase.RUNNING), report=report)


@pytest.mark.parametrize("first", [0, 1, 2])
@pytest.mark.parametrize(
    ("others", "victim"),
    [
        ([member("a", streams=9, players=1), member("b", streams=8, players=50), member("c", streams=9)], "b"),
        ([member("a", players=9), member("b", players=8), member("c", players=9)], "b"),
        ([member("c"), member("a"), member("b")], "a"),
    ],
    ids=["streams", "then-players", "then-name"],
)
def test_the_victim_has_fewest_streams_then_players_then_the_first_name(
    others: list[Member], victim: str, first: int
) -> None:
    assert choose_victim([*others[first:], *others[:first]]).node.node == victim


@pytest.mark.parametrize(
    ("taker", "cores", "grows_by"),
    [
        (ceilings(), 8, 0.25),
        (ceilings(egress=0.5), 8, 0.5),
        (ceilings(egress=2.0), 8, 0.125),
        (ceilings(streams=0.25), 8, 0.5),
        (ceilings(guard=0.125), 8, 0.5),
        (ceilings(), 1, 0.5),
        (ceilings(), 2, 0.25),
    ],
    ids=["equal", "half-the-egress", "twice-the-egress", "fewer-streams", "lower-guard", "fewer-cores", "egress-binds"],
)
def test_the_victims_work_is_measured_by_who_takes_it(taker: Ceilings, cores: int, grows_by: float) -> None:
    victim = member("v", load=Load(egress=0.25, streams=0.125, cpu=0.0625), cores=8)
    other = member("o", load=Load(egress=0.5, streams=0.0, cpu=0.0), ceilings=taker, cores=cores)
    assert mean_after([victim, other], victim) == pytest.approx(0.5 + grows_by)


def test_those_that_stay_share_the_victims_work() -> None:
    victim = member("v", load=Load(egress=0.0, streams=0.5, cpu=0.0))
    rest = [member(name, load=Load(egress=0.0, streams=0.25, cpu=0.0)) for name in "abcd"]
    assert mean_after([victim, *rest], victim) == pytest.approx(0.25 + 0.5 / 4)


@pytest.mark.parametrize(("streams", "action"), [(375, ScaleAction.HELD), (374, ScaleAction.SCALE_IN)])
def test_no_removal_would_leave_a_pool_that_is_hot_the_line_itself_included(streams: int, action: ScaleAction) -> None:
    it = rig(nodes=2, settings=ScalingSettings(scale_in_at=0.5, scale_out_at=0.75, min_nodes=1))
    for sfu in it.sfus.values():
        sfu.streams = streams
    assert it.ticks(20)[-1].action is action


def test_the_work_of_nodes_that_still_drain_comes_to_those_that_stay_as_well() -> None:
    victim = member("v", load=Load(egress=0.0, streams=0.3, cpu=0.0))
    leaving = [member(name, load=Load(egress=0.0, streams=0.6, cpu=0.0)) for name in "xy"]
    rest = [member(name, load=Load(egress=0.0, streams=0.25, cpu=0.0)) for name in "abc"]
    assert mean_after([victim, *rest], victim, leaving=leaving) == pytest.approx(0.25 + 1.5 / 3)


def test_what_a_draining_node_does_not_tell_is_not_nothing() -> None:
    nodes = [member(name) for name in "vab"]
    silent = member("x", load=Load(egress=0.0, streams=None, cpu=0.0))
    assert mean_after(nodes, nodes[0], leaving=[silent]) is None


def test_removals_side_by_side_leave_no_pool_that_is_hot_when_the_last_of_their_players_have_moved() -> None:
    """Twelve nodes at 0.29 are six at 0.58: a seventh removal would be one too many, though no player has moved yet."""
    it = rig(load=0.29, nodes=12)
    ticks = it.ticks(300)
    assert len([each for each in ticks if each.action is ScaleAction.SCALE_IN]) == 6
    assert ticks[-1].reason == "would-be-hot"


@pytest.mark.parametrize(("streams", "action"), [(900, ScaleAction.HELD), (100, ScaleAction.SCALE_IN)])
def test_what_a_person_drains_counts_before_another_node_is_taken_out(streams: int, action: ScaleAction) -> None:
    it = rig(load=QUIET, nodes=8)
    for name in ("s0", "s1", "s2", "s3"):
        it.sfus[name].by, it.sfus[name].streams = "anna", streams
    assert it.ticks(20)[-1].action is action
