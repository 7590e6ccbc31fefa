"""What a node counts as: its pool's word and its SFU's, and neither for more than it says (A5, D1)."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from control.core.autoscaler.samples import NodeReport
from control.core.autoscaler.world import Member, NodeKind, World, classify, unheard
from control.core.pool import NodePhase, PoolNode
from shared.load import Ceilings, Load
from shared.records import Drain, SfuState
from shared.scaling_records import AUTOSCALER, Launching, RemovalStage, Removing, ScalingState, Waiting
from tests.fakes.scaling_worlds import HOT, QUIET, rig

RUNNING = PoolNode(node="n", sfu="s", phase=NodePhase.RUNNING, request="r")
SOUND = NodeReport(
    state=SfuState(address="ws://s", sfu="s", status="ONLINE", warmed_up=True),
    load=Load(egress=0.1, streams=0.1, cpu=0.1),
    ceilings=Ceilings(egress_bps=700e6, streams=1200),
)


def saying(status: str | None = "ONLINE", *, by: str = "", warmed_up: bool = True) -> NodeReport:
    drain = Drain(by=by) if by else None
    return replace(SOUND, state=SfuState(address="ws://s", sfu="s", status=status, warmed_up=warmed_up, drain=drain))


def world(phase: NodePhase, report: NodeReport | None) -> World:
    return World(members=(Member(node=replace(RUNNING, phase=phase), report=report),), certain=True)


@pytest.mark.parametrize(
    ("phase", "report", "kind"),
    [
        (NodePhase.RUNNING, saying(), NodeKind.CAPACITY),
        (NodePhase.STARTING, saying(), NodeKind.CAPACITY),
        (NodePhase.RUNNING, saying(None), NodeKind.CAPACITY),
        (NodePhase.RUNNING, saying(warmed_up=False), NodeKind.WARMING),
        (NodePhase.STARTING, None, NodeKind.WARMING),
        (NodePhase.RUNNING, None, NodeKind.UNKNOWN),
        (NodePhase.RUNNING, saying("SLEEPING"), NodeKind.UNKNOWN),
        (NodePhase.RUNNING, saying("SLEEPING", warmed_up=False), NodeKind.UNKNOWN),
        (NodePhase.RUNNING, replace(SOUND, fresh=False), NodeKind.UNKNOWN),
        (NodePhase.RUNNING, replace(SOUND, load=Load()), NodeKind.UNKNOWN),
        (NodePhase.ENDING, saying(), NodeKind.DRAINING_OTHER),
        (NodePhase.ENDING, None, NodeKind.DRAINING_OTHER),
        (NodePhase.RUNNING, saying("CORDONED", by="kim"), NodeKind.DRAINING_OTHER),
        (NodePhase.RUNNING, saying("TERMINATING", by="kim"), NodeKind.DRAINING_OTHER),
        (NodePhase.RUNNING, saying("CORDONED", by=AUTOSCALER), NodeKind.DRAINING_OWN),
        (NodePhase.FAILED, saying(), NodeKind.LOST),
        (NodePhase.FAILED, None, NodeKind.LOST),
    ],
)
def test_what_a_node_counts_as(phase: NodePhase, report: NodeReport | None, kind: NodeKind) -> None:
    classed = classify(world(phase, report), ScalingState(), patience_s=300.0)
    assert classed.kinds == {"n": kind}
    assert classed.blind == (kind is NodeKind.UNKNOWN)


@pytest.mark.parametrize(("waited_s", "kind"), [(299.9, NodeKind.WARMING), (300.0, NodeKind.LOST)])
def test_a_node_that_warms_for_longer_than_a_launch_may_take_is_lost(waited_s: float, kind: NodeKind) -> None:
    state = ScalingState(waiting=(Waiting(node="n", waited_s=waited_s),))
    classed = classify(world(NodePhase.RUNNING, saying(warmed_up=False)), state, patience_s=300.0)
    assert classed.kinds == {"n": kind}


def test_a_node_that_has_been_launched_and_does_not_report_yet_is_on_its_way() -> None:
    state = ScalingState(launch=Launching(request="r"))
    assert classify(world(NodePhase.RUNNING, None), state, patience_s=300.0).kinds == {"n": NodeKind.WARMING}


def test_a_removal_is_ours_whatever_its_sfu_says() -> None:
    state = ScalingState(removals=(Removing(node="n"),))
    assert classify(world(NodePhase.RUNNING, saying()), state, patience_s=300.0).kinds == {"n": NodeKind.DRAINING_OWN}


@pytest.mark.parametrize(
    ("phase", "state", "expected"),
    [
        (NodePhase.RUNNING, ScalingState(), True),
        (NodePhase.ENDING, ScalingState(), False),
        (NodePhase.FAILED, ScalingState(), False),
        (NodePhase.STARTING, ScalingState(), False),
        (NodePhase.RUNNING, ScalingState(launch=Launching(request="r")), False),
        (NodePhase.RUNNING, ScalingState(launch=Launching(request="r", stages=("healthy",))), True),
        (NodePhase.RUNNING, ScalingState(removals=(Removing(node="n"),)), True),
        (NodePhase.RUNNING, ScalingState(removals=(Removing(node="n", registered=False),)), False),
        (NodePhase.RUNNING, ScalingState(removals=(Removing(node="n", stage=RemovalStage.ENDING.value),)), False),
    ],
)
def test_who_should_be_heard(phase: NodePhase, state: ScalingState, expected: bool) -> None:
    """A fleet of which no SFU is heard is unheard only if one should be."""
    assert unheard(world(phase, None), state) is expected
    assert unheard(world(phase, saying()), state) is False


def test_a_node_that_its_platform_ends_is_not_in_the_mean() -> None:
    it = rig(load=HOT)
    it.sfus["s0"].streams = 0
    it.pool.nodes["s0"] = replace(it.pool.nodes["s0"], phase=NodePhase.ENDING)
    figures = it.tick().figures
    assert (figures.capacity, figures.draining_other) == (3, 1)
    assert figures.mean_load == pytest.approx(HOT)


def test_a_node_of_an_unfamiliar_status_leaves_the_pool_not_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a newer version: alive, not placeable, and what it carries is not known (D1)."""
    it = rig(load=QUIET)
    newer = it.sfus["s0"]
    known = newer.state
    monkeypatch.setattr(newer, "state", lambda: msgspec.structs.replace(known(), status="RESTING"))
    figures = it.ticks(25)[-1].figures
    assert (figures.capacity, figures.unknown + figures.lost, figures.quiet_ticks) == (3, 1, 0)
    assert it.journal == []
