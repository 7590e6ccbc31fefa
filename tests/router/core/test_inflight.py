"""What was placed counts until reports show it (P4)."""

from __future__ import annotations

from router.core.inflight import InFlight
from shared.placing import IN_FLIGHT_LIFE_S, Counts


def test_a_join_counts_until_the_second_report_after_it() -> None:
    it = InFlight()
    it.add("a", (1, 7), rooms=1, now=0.0)
    assert [it.of("a", (1, revision)) for revision in (7, 8, 9)] == [Counts(1, 1), Counts(1, 1), Counts()]
    it.reported("a", (1, 8))
    assert it.joins == 1
    it.reported("a", (1, 9))
    assert it.joins == 0
    assert it.sfus == ()


def test_a_restart_forgets_and_a_report_from_before_it_shows_nothing() -> None:
    it = InFlight()
    it.add("a", (2, 0), rooms=0, now=0.0)
    assert it.of("a", (1, 99)) == Counts(1, 0)
    assert it.of("a", (3, 0)) == Counts()


def test_answers_of_the_store_may_overtake_each_other() -> None:
    it = InFlight()
    it.told("a", {(1, 7): Counts(5, 2)}, now=0.0)
    it.told("a", {(1, 7): Counts(4, 2), (1, 8): Counts(1, 0)}, now=0.0)
    assert it.of("a", (1, 7)) == Counts(6, 2)
    assert it.of("b", (1, 7)) == Counts()


def test_where_no_report_comes_time_ends_it() -> None:
    it = InFlight()
    it.add("old", (0, 0), rooms=0, now=0.0)
    it.add("new", (0, 0), rooms=0, now=5.0)
    assert it.expire(now=IN_FLIGHT_LIFE_S - 0.1) == []
    assert it.expire(now=float(IN_FLIGHT_LIFE_S)) == ["old"]
    assert (it.sfus, it.joins) == (("new",), 1)
