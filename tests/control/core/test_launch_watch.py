"""The stages of a launch are told once each, with the time since the decision."""

from __future__ import annotations

from control.core.autoscaler.stages import LaunchStage, LaunchWatch
from shared.records import LoadParts, SfuState
from shared.scaling_records import Launching, Newcomer, ScalingState

LAUNCHED_AT = 1000.0


def sfu(*, warmed_up: bool = False, rooms: int | None = 0) -> SfuState:
    return SfuState(address="ws://n", sfu="n", warmed_up=warmed_up, load_parts=LoadParts(rooms=rooms))


def launching(*stages: str) -> ScalingState:
    return ScalingState(launch=Launching(request="r", node="n", sfu="n", since_at=LAUNCHED_AT, stages=stages))


def test_a_node_is_healthy_when_a_router_knows_it_and_then_warm() -> None:
    watch = LaunchWatch()
    assert watch.look(launching(), [], now_at=1001.0) == []
    (healthy,) = watch.look(launching(), [sfu()], now_at=1003.5)
    assert (healthy.stage, healthy.sfu, healthy.seconds) == (LaunchStage.HEALTHY, "n", 3.5)
    assert watch.look(launching(), [sfu()], now_at=1004.0) == []
    (warm,) = watch.look(launching(), [sfu(warmed_up=True)], now_at=1005.0)
    assert (warm.stage, warm.seconds) == (LaunchStage.FIRST_PACKET, 5.0)


def test_a_new_leader_does_not_tell_what_the_last_one_has_told() -> None:
    reached = LaunchWatch().look(launching("healthy"), [sfu(warmed_up=True)], now_at=1005.0)
    assert [each.stage for each in reached] == [LaunchStage.FIRST_PACKET]


def test_the_first_room_of_a_newcomer_is_told_once() -> None:
    watch = LaunchWatch()
    state = ScalingState(newcomers=(Newcomer(sfu="n", launched_at=LAUNCHED_AT),))
    assert watch.look(state, [sfu(rooms=None)], now_at=1010.0) == []
    (room,) = watch.look(state, [sfu(rooms=1)], now_at=1060.0)
    assert (room.stage, room.seconds) == (LaunchStage.FIRST_ROOM, 60.0)
    assert watch.look(state, [sfu(rooms=2)], now_at=1061.0) == []


def test_a_clock_that_went_back_gives_no_negative_time() -> None:
    (healthy,) = LaunchWatch().look(launching(), [sfu()], now_at=500.0)
    assert healthy.seconds == 0.0


def counted() -> ScalingState:
    return ScalingState(newcomers=(Newcomer(sfu="n", launched_at=LAUNCHED_AT),))


def test_capacity_is_told_by_the_tick_that_counts_it() -> None:
    watch = LaunchWatch()
    (reached,) = watch.tick(launching("healthy", "first_packet"), counted(), now_at=1030.0)
    assert (reached.stage, reached.sfu, reached.seconds) == (LaunchStage.CAPACITY, "n", 30.0)
    assert watch.tick(counted(), counted(), now_at=1060.0) == []


def test_stages_that_only_a_tick_could_see_are_told_by_it() -> None:
    """A platform that names the node of a launch late: its SFU may be there and warm by then."""
    watch = LaunchWatch()
    nameless = ScalingState(launch=Launching(request="r", since_at=LAUNCHED_AT))
    assert watch.look(nameless, [sfu(warmed_up=True)], now_at=1020.0) == []
    named = launching("healthy", "first_packet")
    reached = watch.tick(nameless, named, now_at=1030.0)
    assert [(each.stage, each.sfu, each.seconds) for each in reached] == [
        (LaunchStage.HEALTHY, "n", 30.0),
        (LaunchStage.FIRST_PACKET, "n", 30.0),
    ]
    assert watch.look(named, [sfu(warmed_up=True)], now_at=1031.0) == []
    assert watch.tick(named, named, now_at=1060.0) == []


def test_a_node_that_is_capacity_at_the_tick_that_first_sees_it_has_reached_all_before() -> None:
    nameless = ScalingState(launch=Launching(request="r", since_at=LAUNCHED_AT))
    reached = LaunchWatch().tick(nameless, counted(), now_at=1030.0)
    assert [each.stage for each in reached] == [LaunchStage.HEALTHY, LaunchStage.FIRST_PACKET, LaunchStage.CAPACITY]


def test_a_tick_tells_nothing_again_that_a_look_has_told() -> None:
    watch = LaunchWatch()
    watch.look(launching(), [sfu(warmed_up=True)], now_at=1004.0)
    assert watch.tick(launching(), launching("healthy", "first_packet"), now_at=1030.0) == []
