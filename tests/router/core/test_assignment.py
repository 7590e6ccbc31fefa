"""Assignments: sticky, excluding, leaving, and looked at twice."""

from __future__ import annotations

import random

import pytest

from router.core.assignment import Assigner, PlacementReason
from router.core.directory import Directory
from router.core.plan import Ask, PlacementPlan
from router.core.selector.node_selector import NodeSelector
from shared.placing import Counts, InFlightThere, PlacedRoom
from shared.records import RoomPlacement, SfuState


def state(sfu: str, load: float, revision: int = 1, status: str | None = None) -> SfuState:
    return SfuState(sfu=sfu, address=f"ws://{sfu}", load=load, incarnation=1, revision=revision, status=status)


class World:
    def __init__(self) -> None:
        self.directory = Directory()
        for n, sfu in enumerate("abc"):
            self.directory.hear(state(sfu, n / 10), now=0.0)
        self.assigner = Assigner(self.directory, NodeSelector())

    def plan(self, room_had: str = "", **ask: object) -> PlacementPlan:
        return self.assigner.plan(Ask(room="r", **ask), room_had=room_had, now=0.0, rng=random.Random(1))  # type: ignore[arg-type]

    def settle(
        self, plan: PlacementPlan, sfu: str | None, *, fresh: bool | None = None, carrying: tuple[str, ...] = ()
    ) -> tuple[str | None, str] | None:
        fresh = sfu != plan.room_had if fresh is None else fresh
        placed = PlacedRoom(placement=RoomPlacement(sfu=sfu), fresh=fresh) if sfu else None
        decision = self.assigner.settle(plan, placed, carrying=carrying, now=0.0)
        return None if decision is None else (decision.chosen, decision.reason)


@pytest.fixture
def it() -> World:
    return World()


def test_the_plan_offers_every_placeable_sfu_best_first_and_says_why_not_the_others(it: World) -> None:
    it.directory.hear(state("a", 0.0, 2, "CORDONED"), now=0.0)
    plan = it.plan()
    assert plan.eligible == ("b", "c")
    assert [(r.sfu, r.why) for r in plan.rejected] == [("a", "cordoned")]


@pytest.mark.parametrize(
    ("room_had", "placed", "fresh", "reason"),
    [
        ("", "a", True, PlacementReason.CHOSEN),
        ("", "c", False, PlacementReason.STICKY),
        ("c", "c", False, PlacementReason.STICKY),
        ("c", "c", True, PlacementReason.STICKY),
        ("x", "a", True, PlacementReason.REPLACED),
        ("x", "a", False, PlacementReason.STICKY),
    ],
)
def test_the_reason_tells_what_decided(
    it: World, room_had: str, placed: str, fresh: bool, reason: PlacementReason
) -> None:
    assert it.settle(it.plan(room_had), placed, fresh=fresh) == (placed, reason)


def test_where_the_player_goes_is_among_the_candidates_though_it_was_not_among_the_best(it: World) -> None:
    for n in range(20):
        it.directory.hear(state(f"s{n:02}", 0.3 + n / 100), now=0.0)
    it.assigner.standings.fail({"s19": (1, 60.0)}, now=0.0)
    elsewhere = PlacedRoom(placement=RoomPlacement(sfu="s19"))
    plan = it.plan()
    sticky = it.assigner.settle(plan, elsewhere, carrying=(), now=0.0)
    assert sticky is not None
    assert [(each.sfu, each.figure, each.passed_over) for each in sticky.candidates if each.sfu == sticky.chosen] == [
        ("s19", 0.49, "failing-connections")
    ]
    assert "s19" not in {each.sfu for each in sticky.rejected}, "it was eligible"
    aside = it.assigner.settle(
        it.plan("a", exclude=("a",)), PlacedRoom(placement=RoomPlacement(sfu="a")), carrying=("s18",), now=0.0
    )
    assert aside is not None
    assert aside.chosen == "s18"
    assert ("s18", 0.48) in [(each.sfu, each.figure) for each in aside.candidates]


def test_a_room_keeps_its_sfu_though_another_is_better(it: World) -> None:
    plan = it.plan("c")
    assert it.assigner.place_locally(plan, RoomPlacement(sfu="c")) == PlacedRoom(placement=RoomPlacement(sfu="c"))
    assert plan.wish.refuse == ()


def test_without_redis_a_cordoned_placement_is_replaced_by_the_best(it: World) -> None:
    it.directory.hear(state("c", 0.2, 2, "CORDONED"), now=0.0)
    placement = it.assigner.place_locally(it.plan("c"), RoomPlacement(sfu="c", generation=4))
    assert placement == PlacedRoom(placement=RoomPlacement(sfu="a", generation=5), fresh=True)
    assert it.plan("c").wish.refuse == ("c",)


def test_what_changed_while_redis_was_asked_is_seen(it: World) -> None:
    plan = it.plan()
    it.directory.hear(state("a", 0.0, 2, "CORDONED"), now=0.0)
    assert it.settle(plan, "a") is None


def test_excludes_are_honoured_while_another_is_eligible_and_the_room_stays_put(it: World) -> None:
    assert it.settle(it.plan("a", exclude=("a",)), "a") == ("b", PlacementReason.EXCLUDED)
    assert it.settle(it.plan("a", exclude=("a", "b", "c")), "a") == ("a", PlacementReason.LAST_RESORT)


def test_a_player_that_cannot_use_the_rooms_sfu_goes_where_the_room_is_already(it: World) -> None:
    assert it.settle(it.plan("a", exclude=("a",)), "a", carrying=("c",)) == ("c", PlacementReason.EXCLUDED)


def test_a_player_never_gets_back_the_cordoned_sfu_it_leaves(it: World) -> None:
    ask = {"leave": "a", "leave_version": (1, 1), "reason": "cordoned"}
    assert it.settle(it.plan("a", **ask), "a") == ("b", PlacementReason.EXCLUDED)
    everything_else = {"exclude": ("b", "c")} | ask
    for sfu in "bc":
        it.directory.hear(state(sfu, 0.5, 2, "CORDONED"), now=0.0)
    assert it.settle(it.plan("a", **everything_else), "a") == (None, PlacementReason.NO_SFU)


def test_a_player_that_lost_its_only_sfu_gets_it_back(it: World) -> None:
    for sfu in "bc":
        it.directory.hear(state(sfu, 0.5, 2, "CORDONED"), now=0.0)
    plan = it.plan("a", leave="a", leave_version=(1, 1), reason="lost")
    assert it.settle(plan, "a") == ("a", PlacementReason.LAST_RESORT)


@pytest.mark.parametrize(
    ("reason", "still_carried"),
    [("cordoned", True), ("asked", True), ("lost", False), ("failed", False), ("join", False), ("", False)],
)
def test_a_player_that_an_sfu_still_carries_never_gets_it_back_and_any_other_takes_what_there_is(
    it: World, reason: str, still_carried: bool
) -> None:
    for sfu in "bc":
        it.directory.hear(state(sfu, 0.5, 2, "CORDONED"), now=0.0)
    plan = it.plan("a", leave="a", leave_version=(1, 1), reason=reason)
    assert plan.ask.still_carried is still_carried
    outcome = (None, PlacementReason.NO_SFU) if still_carried else ("a", PlacementReason.LAST_RESORT)
    assert it.settle(plan, "a") == outcome


def test_a_lagging_router_believes_the_player(it: World) -> None:
    plan = it.plan("a", leave="a", leave_version=(1, 7), reason="cordoned")
    assert plan.eligible == ("b", "c")
    assert it.plan().eligible == ("b", "c"), "and so for all players after it"


def test_that_no_sfu_is_placeable_is_said(it: World) -> None:
    for sfu in "abc":
        it.directory.hear(state(sfu, 0.5, 2, "CORDONED"), now=0.0)
    plan = it.plan()
    assert plan.eligible == ()
    assert it.assigner.place_locally(plan, None) is None
    assert it.settle(plan, None) == (None, PlacementReason.NO_SFU)


def test_a_vanished_sfu_is_given_only_when_there_is_no_other(it: World) -> None:
    fleet = [state(sfu, 0.5, 2) for sfu in "abc"]
    it.directory.read_back(fleet, now=0.0)
    it.directory.read_back(fleet[1:], now=0.0)
    before = it.plan()
    assert before.eligible == ("b", "c") or before.eligible == ("c", "b")
    it.directory.read_back([], now=0.0)
    assert it.settle(before, before.eligible[0]) is None, "it vanished while Redis was asked: plan again"
    last = it.plan()
    assert sorted(last.eligible) == ["a", "b", "c"]
    assert it.settle(last, "a") == ("a", PlacementReason.CHOSEN)


def test_the_sfu_that_a_room_or_a_player_left_is_named_with_its_reason_in_a_fleet_full_of_cordons(it: World) -> None:
    for n in range(20):
        it.directory.hear(state(f"old-{n:02}", 0.5, 2, "CORDONED"), now=0.0)
    reasons = {each.sfu: each.why for each in it.plan("old-19", leave="old-18").rejected}
    assert (reasons["old-19"], reasons["old-18"], len(reasons)) == ("cordoned", "cordoned", 8)
    assert {each.sfu: each.why for each in it.plan("never").rejected}["never"] == "unknown-sfu"
    assert "made-up" not in {each.sfu for each in it.plan("a", leave="made-up").rejected}


def test_a_failing_sfu_that_a_room_left_is_named_behind_a_whole_fleet(it: World) -> None:
    for n in range(20):
        it.directory.hear(state(f"more-{n:02}", 0.5), now=0.0)
    it.assigner.standings.fail({"a": (1, 60.0)}, now=0.0)
    plan = it.plan("a")
    assert plan.keep is None
    assert (plan.rejected[0].sfu, plan.rejected[0].why) == ("a", "failing-connections")


def test_who_cannot_follow_the_room_is_placed_by_what_redis_and_this_router_have_in_flight(it: World) -> None:
    """Redis hears of such joins only afterwards; of those it has counted it knows more."""
    plan = it.plan("a", exclude=("a",))
    for _ in range(20):
        it.assigner.standings.placed_alone("b", rooms=0, now=0.0)
    there = {"b": InFlightThere(counts={(1, 1): Counts(3, 0)}), "c": InFlightThere(counts={(1, 1): Counts(5, 0)})}
    placed = PlacedRoom(placement=RoomPlacement(sfu="a"), in_flight=there)
    heeded = it.assigner.heed(plan, placed, now=0.0)
    assert {each.sfu: each.in_flight for each in heeded.candidates} == {"b": 3, "c": 5}, "what decided in Redis"
    decision = it.assigner.settle(heeded, placed, carrying=(), now=0.0)
    assert decision is not None
    assert (decision.chosen, decision.reason) == ("c", PlacementReason.EXCLUDED)
    assert {each.sfu: each.in_flight for each in decision.candidates} == {"b": 20, "c": 5, "a": 0}
