"""What moves an SFU up or down besides its report: failures, the cap on joins, warming up, what is in flight."""

from __future__ import annotations

import random
from typing import Any

import pytest

from router.core.directory import Directory
from router.core.selector.ladder import NO_PREFERENCE, Preference
from router.core.selector.node_selector import NodeSelector, SortBy
from router.core.standings import TOO_FAST_S, WARM_UP_WAIT_S, Standings
from shared.placing import IN_FLIGHT_LIFE_S, Counts
from shared.records import LoadParts, SfuState


class World:
    def __init__(self, **selector: Any) -> None:
        self.directory = Directory()
        self.standings = Standings(self.directory, NodeSelector(**selector))
        self.now = 0.0
        self.revisions: dict[str, int] = {}

    def report(self, sfu: str, load: float | None, **fields: Any) -> None:
        revision = self.revisions[sfu] = self.revisions.get(sfu, 0) + 1
        facts = {"incarnation": 1, "warmed_up": True} | fields
        self.directory.hear(SfuState(sfu=sfu, address=sfu, load=load, revision=revision, **facts), now=self.now)

    def order(self, preference: Preference = NO_PREFERENCE, avoid: str = "") -> list[str]:
        self.standings.refresh(now=self.now)
        best, _ = self.standings.best(preference, avoid=lambda s: s == avoid, now=self.now, rng=random.Random(1))
        return [each.sfu for each in best]

    def why(self, sfu: str, preference: Preference = NO_PREFERENCE) -> str:
        best, _ = self.standings.best(preference, avoid=lambda _: False, now=self.now, rng=random.Random(1))
        return next(each.passed_over for each in best if each.sfu == sfu)


@pytest.fixture
def it() -> World:
    world = World()
    for n, sfu in enumerate("abc"):
        world.report(sfu, n / 10)
    return world


def test_it_follows_the_directory(it: World) -> None:
    assert it.order() == ["a", "b", "c"]
    it.report("a", 0.15)
    assert it.order() == ["b", "a", "c"] or it.order() == ["a", "b", "c"]
    it.report("a", 0.25)
    assert it.order() == ["b", "c", "a"]
    it.report("b", 0.1, status="CORDONED")
    assert it.order() == ["c", "a"]
    assert [(r.sfu, r.why) for r in it.standings.refused(now=0.0)] == [("b", "cordoned")]
    it.report("b", 0.1, status="ONLINE")
    assert it.order() == ["b", "c", "a"]
    it.directory.unregister("b")
    assert it.order() == ["c", "a"]
    assert it.standings.refused(now=0.0) == ()


def test_a_stale_sfu_is_out_until_it_is_heard_of_again(it: World) -> None:
    it.now = 3.0
    it.report("b", 0.1)
    it.now = 6.0
    assert it.order() == ["b"]
    assert [(r.sfu, r.why) for r in it.standings.refused(now=6.0)] == [("a", "stale"), ("c", "stale")]
    it.report("c", 0.2)
    assert it.order() == ["b", "c"]


def test_a_missing_sfu_is_in_again_when_redis_is_lost_or_lists_it(it: World) -> None:
    states = [it.directory.state(sfu) for sfu in "abc"]
    it.directory.read_back([s for s in states if s], now=0.0)
    it.directory.read_back([s for s in states[1:] if s], now=0.0)
    assert it.order() == ["b", "c"]
    it.directory.lose_store(now=0.0)
    assert it.order() == ["a", "b", "c"]
    it.directory.see_store(now=0.0)
    it.directory.read_back([s for s in states[1:] if s], now=0.0)
    assert it.order() == ["b", "c"]
    it.directory.read_back([s for s in states if s], now=0.0)
    assert it.order() == ["a", "b", "c"]


def test_what_is_in_flight_counts_until_reports_show_it(it: World) -> None:
    for _ in range(15):
        it.standings.placed_alone("a", rooms=1, now=0.0)
    assert it.order() == ["b", "a", "c"]
    it.report("a", 0.0)
    assert it.order() == ["b", "a", "c"]
    it.report("a", 0.0)
    assert it.order() == ["a", "b", "c"]


def test_what_redis_says_is_in_flight_counts_and_ends(it: World) -> None:
    it.standings.told("a", {(1, 1): Counts(15, 0)}, now=0.0)
    assert it.order() == ["b", "a", "c"]
    it.now = IN_FLIGHT_LIFE_S - 0.5
    for n, sfu in enumerate("bc", start=1):
        it.report(sfu, n / 10)
    it.directory.hear(SfuState(sfu="a", address="a", load=0.0, incarnation=1, revision=2, warmed_up=True), now=it.now)
    it.now += 1.0
    assert it.order() == ["a", "b", "c"]


def test_an_sfu_that_fails_for_many_is_taken_when_there_is_no_other(it: World) -> None:
    it.standings.fail({"a": (1, 60.0), "x": (1, 60.0)}, now=0.0)
    assert it.order() == ["b", "c", "a"]
    assert it.why("a") == "failing-connections"
    assert it.standings.failing == 1
    it.now = 2.0
    for sfu in "bc":
        it.report(sfu, 0.0, status="CORDONED")
    assert it.order() == ["a"]


def test_a_run_before_the_one_that_fails_is_left_out_and_a_later_one_is_not(it: World) -> None:
    """Other routers have seen the SFU start again and fail; this one's report of it is older."""
    for incarnation, fails in ((1, True), (2, True), (3, False)):
        it.report("a", 0.0, incarnation=incarnation)
        it.standings.fail({"a": (2, 60.0)}, now=0.0)
        assert it.standings.is_failing("a") is fails
        assert it.order()[-1] == ("a" if fails else "c")
    assert not it.standings.is_failing("unknown")


def test_a_failing_sfu_whose_restarted_process_fails_as_well_is_left_out_again(it: World) -> None:
    it.standings.fail({"a": (1, 60.0)}, now=0.0)
    it.report("a", 0.0, incarnation=2)
    assert it.order() == ["a", "b", "c"]
    it.standings.fail({"a": (2, 60.0)}, now=0.0)
    assert it.order() == ["b", "c", "a"]


def test_a_failing_sfu_is_forgiven_after_its_pause_and_by_a_restart(it: World) -> None:
    it.standings.fail({"a": (1, 60.0)}, now=0.0)
    it.report("a", 0.0, incarnation=2)
    assert it.order() == ["a", "b", "c"]
    it.standings.fail({"b": (1, 3.0)}, now=0.0)
    it.now = 3.0
    assert it.order() == ["a", "b", "c"]
    it.standings.fail({"b": (1, 3.0)}, now=3.0)
    assert it.order() == ["a", "c", "b"]
    it.standings.fail({}, now=3.0)
    assert it.order() == ["a", "b", "c"]


def test_an_sfu_over_the_cap_is_passed_over_for_a_moment(it: World) -> None:
    it.standings.told("a", {}, too_fast=True, now=0.0)
    assert it.order() == ["b", "c", "a"]
    assert it.why("a") == "joins-too-fast"
    it.now = TOO_FAST_S
    assert it.order() == ["a", "b", "c"]


def test_an_sfu_that_has_not_warmed_up_comes_after_those_that_have(it: World) -> None:
    it.report("new", 0.0, warmed_up=False)
    assert it.order() == ["a", "b", "c", "new"]
    assert it.why("new") == "not-warmed-up"
    it.report("new", 0.0)
    assert it.order()[0] in ("a", "new")


def test_one_whose_probe_calls_fail_is_passed_over_for_as_long_as_they_do(it: World) -> None:
    for now in (0.0, WARM_UP_WAIT_S, 100 * WARM_UP_WAIT_S):
        it.now = now
        it.report("a", 0.5)
        it.report("unreachable", 0.0, warmed_up=False, probe_failure="no-answer")
        assert it.order()[-1] == "unreachable"
        assert it.why("unreachable") == "not-warmed-up"
    it.report("a", 0.5, status="CORDONED")
    assert it.order() == ["unreachable"], "there is no other"
    it.report("a", 0.5)
    it.report("unreachable", 0.0, probe_failure="no-answer")
    assert it.order() == ["unreachable", "a"], "another of its addresses works, or a player's media got through"


def test_one_that_cannot_prove_itself_is_not_waited_for_for_ever(it: World) -> None:
    def order_at(now: float) -> list[str]:
        it.now = now
        it.report("a", 0.5)  # the others are stale by then
        it.report("old-program", 0.1, warmed_up=False)
        return it.order()

    assert order_at(0.0)[-1] == "old-program"
    assert order_at(WARM_UP_WAIT_S - 0.1) == ["a", "old-program"]
    assert order_at(WARM_UP_WAIT_S) == ["old-program", "a"]
    assert order_at(WARM_UP_WAIT_S) == ["old-program", "a"], "it has been waited for"
    it.report("old-program", 0.1, warmed_up=False, incarnation=2)
    assert it.order() == ["a", "old-program"], "a restart is waited for as well"


def test_no_report_of_load_is_never_preferred(it: World) -> None:
    it.report("silent", None)
    it.report("absurd", -4.0)
    assert it.order()[:3] == ["a", "b", "c"]
    assert {it.why("silent"), it.why("absurd")} == {"load-unknown"}


def test_what_a_placement_costs_follows_the_fleet_without_a_report(it: World) -> None:
    """An SFU without clients is taken for a typical one, also by reports that came before the typical one was known."""

    def costs() -> tuple[float, float]:
        it.standings.refresh(now=it.now)
        asked_for = it.standings.of("a").cost
        best, _ = it.standings.best(NO_PREFERENCE, avoid=lambda _: False, now=it.now, rng=random.Random(1))
        return asked_for, next(each.cost for each in best if each.sfu == "b")

    assert costs() == pytest.approx((0.01, (0.1 + 10 * 0.01) / 10))
    it.report("busy", 0.6, load_parts=LoadParts(clients=200))
    typical = 0.7 / 210
    assert costs() == pytest.approx((typical, (0.1 + 10 * typical) / 10))


def test_a_cell_is_a_preference_with_a_reason_for_the_others(it: World) -> None:
    it.report("east", 0.9, cell="east")
    east = Preference(cell="east")
    assert it.order(east) == ["east", "a", "b", "c"]
    assert (it.why("east", east), it.why("a", east)) == ("", "other-cell")
    assert it.order(east, avoid="east") == ["a", "b", "c"]


def test_rooms_in_flight_are_what_adds_where_rooms_are_sorted_by() -> None:
    it = World(sort_by=SortBy.ROOMS)
    for sfu in "ab":
        it.report(sfu, None, load_parts=LoadParts(rooms=3))
    for _ in range(5):
        it.standings.placed_alone("a", rooms=0, now=0.0)
    it.standings.placed_alone("b", rooms=1, now=0.0)
    assert it.order() == ["a", "b"]
