"""The directory: what is merged, what is fresh, what is told."""

from __future__ import annotations

import msgspec
import pytest

from router.core import directory as module
from router.core.directory import Directory, NotPlaceable
from router.core.facts import Cordoned, Fact, Gone, GoneReason, Uncordoned
from shared.records import SfuState, read_record, write_record


def state(revision: int, status: str | None = None, *, sfu: str = "s", incarnation: int = 1) -> SfuState:
    return SfuState(sfu=sfu, address="ws://s", incarnation=incarnation, revision=revision, status=status)


def kinds(facts: list[Fact]) -> list[type[Fact]]:
    return [type(fact) for fact in facts]


@pytest.fixture
def it() -> Directory:
    """With one SFU, linked here, heard of at 0."""
    directory = Directory()
    directory.hear(state(1), now=0.0)
    directory.link("s", now=0.0)
    return directory


def test_a_missing_status_means_online(it: Directory) -> None:
    assert it.refusal("s", now=0.0) is None


@pytest.mark.parametrize(
    ("status", "refused"),
    [
        ("CORDONED", NotPlaceable.CORDONED),
        ("TERMINATING", NotPlaceable.TERMINATING),
        ("HIBERNATING", NotPlaceable.UNKNOWN_STATUS),
    ],
)
def test_only_online_is_placeable(it: Directory, status: str, refused: NotPlaceable) -> None:
    it.hear(state(2, status), now=0.0)
    assert it.refusal("s", now=0.0) is refused
    assert "s" in it


def test_the_state_is_applied_before_the_fact_exists(it: Directory) -> None:
    assert kinds(it.hear(state(2, "CORDONED"), now=0.0)) == [Cordoned]
    assert it.refusal("s", now=0.0) is NotPlaceable.CORDONED


def test_a_cordon_is_told_once_and_its_end_once(it: Directory) -> None:
    assert kinds(it.hear(state(2, "CORDONED"), now=0.0)) == [Cordoned]
    assert it.hear(state(2, "CORDONED"), now=0.0) == []
    assert it.hear(state(3, "CORDONED"), now=0.0) == []
    assert kinds(it.hear(state(4), now=0.0)) == [Uncordoned]
    assert it.hear(state(5), now=0.0) == []


def test_an_older_state_changes_nothing_whenever_it_comes(it: Directory) -> None:
    it.hear(state(5, "CORDONED"), now=0.0)
    assert it.hear(state(4, "ONLINE"), now=9.0) == []
    assert it.read_back([state(3)], now=9.0) == []
    assert it.refusal("s", now=0.0) is NotPlaceable.CORDONED


def test_a_new_incarnation_is_newer_whatever_its_revision(it: Directory) -> None:
    it.hear(state(500, "CORDONED"), now=0.0)
    assert kinds(it.hear(state(1, incarnation=2), now=0.0)) == [Uncordoned]
    assert it.refusal("s", now=0.0) is None


def test_an_sfu_not_heard_of_is_not_placeable_and_not_dead(it: Directory) -> None:
    assert it.refusal("s", now=4.9) is None
    assert it.refusal("s", now=5.0) is NotPlaceable.STALE
    assert it.tick(now=100.0) == []
    it.hear(state(1), now=100.0)
    assert it.refusal("s", now=100.0) is NotPlaceable.STALE, "the same revision again is no sign of life"
    it.hear(state(2), now=100.0)
    assert it.refusal("s", now=100.0) is None


def test_a_record_found_in_redis_is_trusted_for_two_seconds_until_it_moves() -> None:
    it = Directory()
    it.read_back([state(7)], now=10.0)
    assert it.refusal("s", now=11.9) is None
    assert it.refusal("s", now=12.0) is NotPlaceable.STALE
    it.read_back([state(8)], now=12.0)
    assert it.refusal("s", now=16.9) is None


def test_a_broken_link_without_other_news_means_lost_after_three_seconds(it: Directory) -> None:
    it.unlink("s", now=10.0)
    assert it.tick(now=12.9) == []
    (gone,) = it.tick(now=13.0)
    assert isinstance(gone, Gone)
    assert gone.reason is GoneReason.LOST
    assert "s" not in it


def test_other_routers_news_keep_an_unlinked_sfu(it: Directory) -> None:
    it.unlink("s", now=10.0)
    it.read_back([state(2)], now=11.0)
    assert it.tick(now=13.0) == []
    assert it.refusal("s", now=13.0) is None


def test_what_this_router_wrote_itself_is_no_news(it: Directory) -> None:
    it.unlink("s", now=10.0)
    it.read_back([state(1)], now=12.0)
    assert kinds(it.tick(now=13.0)) == [Gone]


def test_a_lost_sfu_does_not_rise_from_its_old_record_but_from_its_own_word(it: Directory) -> None:
    it.unlink("s", now=10.0)
    it.tick(now=13.0)
    it.read_back([state(1)], now=14.0)
    assert "s" not in it
    it.hear(state(2), now=15.0)
    assert it.refusal("s", now=15.0) is None


def test_an_unregistered_incarnation_never_comes_back(it: Directory) -> None:
    assert kinds(it.unregister("s")) == [Gone]
    it.hear(state(99), now=1.0)
    it.read_back([state(99)], now=1.0)
    assert "s" not in it
    it.hear(state(1, incarnation=2), now=1.0)
    assert "s" in it


def test_the_final_sequence_is_told_once_and_the_end_not_again(it: Directory) -> None:
    assert kinds(it.hear(state(2, "TERMINATING"), now=0.0)) == [Cordoned, Gone]
    (gone,) = it.unregister("s")
    assert isinstance(gone, Gone)
    assert gone.told


def test_a_record_that_vanishes_is_gone_after_a_grace_or_at_once_when_it_was_terminating() -> None:
    it = Directory()
    it.read_back([state(1), state(1, "TERMINATING", sfu="t")], now=0.0)
    assert [fact.sfu for fact in it.read_back([], now=1.0)] == ["t"]
    it.hear(state(2), now=5.9, direct=False)
    assert it.tick(now=5.9) == []
    assert kinds(it.tick(now=6.0)) == [Gone]


def test_linked_sfus_do_not_depend_on_their_record(it: Directory) -> None:
    it.read_back([state(1)], now=0.0)
    assert it.read_back([], now=1.0) == []
    assert it.tick(now=60.0) == []


def test_an_sfu_of_other_routers_that_stops_reporting_is_lost() -> None:
    it = Directory()
    it.read_back([state(1)], now=0.0)
    it.read_back([state(2)], now=1.0)
    assert it.tick(now=15.9) == []
    assert kinds(it.tick(now=16.0)) == [Gone]


def test_while_redis_is_away_remote_sfus_do_not_age_and_nothing_is_lost() -> None:
    it = Directory()
    it.read_back([state(1)], now=0.0)
    it.read_back([state(2)], now=1.0)
    it.lose_store(now=3.0)
    assert it.refusal("s", now=1000.0) is None
    assert it.tick(now=1000.0) == []
    it.read_back([state(2)], now=1000.0)
    assert it.refusal("s", now=1002.9) is None, "it had 3 of its 5 seconds left"
    assert it.refusal("s", now=1003.0) is NotPlaceable.STALE
    assert "s" in it


def test_while_redis_is_away_a_linked_sfu_ages_as_ever_and_is_lost_later(it: Directory) -> None:
    it.lose_store(now=1.0)
    assert it.refusal("s", now=5.0) is NotPlaceable.STALE
    it.unlink("s", now=6.0)
    assert it.refusal("s", now=6.0) is NotPlaceable.STALE
    assert it.tick(now=15.9) == []
    assert kinds(it.tick(now=16.0)) == [Gone]


def test_an_sfu_whose_link_broke_and_that_no_other_router_told_of_ages_while_redis_is_away(it: Directory) -> None:
    it.lose_store(now=1.0)
    it.unlink("s", now=2.0)
    assert it.refusal("s", now=4.9) is None
    assert it.refusal("s", now=5.0) is NotPlaceable.STALE
    it.see_store(now=5.0)
    assert it.refusal("s", now=5.0) is NotPlaceable.STALE


# --- two processes with one id ---


def test_a_process_is_alive_elsewhere_while_its_revision_advances_and_no_link_broke_here() -> None:
    it = Directory()
    boot = {"boot": "first"}
    it.hear(msgspec.structs.replace(state(1), **boot), now=0.0, direct=False)
    assert it.alive_elsewhere("s", now=0.0) == "", "it may be a dead one's record"
    it.hear(msgspec.structs.replace(state(2), **boot), now=1.0, direct=False)
    assert it.alive_elsewhere("s", now=1.0 + module.ALIVE_S - 0.1) == "first"
    assert it.alive_elsewhere("s", now=1.0 + module.ALIVE_S) == ""
    it.link("s", now=1.0)
    assert it.alive_elsewhere("s", now=1.0) == "", "it is here"
    it.unlink("s", now=1.5)
    assert it.alive_elsewhere("s", now=1.5) == "", "its link broke and no other router has heard of it since"


def test_after_the_wrong_process_was_sent_away_an_older_state_counts(it: Directory) -> None:
    it.hear(state(9), now=0.0)
    it.forget("s")
    assert it.state("s") is None
    it.hear(state(3), now=0.0)
    assert it.state("s") == state(3)


# --- mixed versions (D9) ---


def test_an_older_program_without_revisions_is_placeable_and_fresh_as_long_as_it_is_heard_of() -> None:
    it = Directory()
    old = read_record(SfuState, b'{"address":"ws://old","load":0.2}')
    it.read_back([old], now=0.0)
    it.read_back([old], now=4.0)
    assert it.refusal("ws://old", now=8.9) is None
    assert it.refusal("ws://old", now=9.0) is NotPlaceable.STALE


def test_a_cordon_without_revisions_is_not_lifted_by_a_copy_from_before() -> None:
    it = Directory()
    old = SfuState(address="ws://old")
    it.hear(old, now=0.0)
    assert kinds(it.hear(msgspec.structs.replace(old, status="CORDONED"), now=0.0)) == [Cordoned]
    it.hear(old, now=1.0)
    assert it.refusal("ws://old", now=1.0) is NotPlaceable.CORDONED


def test_an_older_routers_rewrite_keeps_what_it_does_not_know(it: Directory) -> None:
    """An old router knows address and load, reads, writes load back, and keeps the rest as it was."""

    class OldState(msgspec.Struct):
        address: str
        load: float | None = None
        extra: dict[str, object] | None = None

    cordoned = write_record(state(4, "CORDONED"))
    fields = msgspec.json.decode(cordoned)
    known = OldState(address=fields.pop("address"), load=fields.pop("load", None), extra=fields)
    rewritten = msgspec.json.encode({"address": known.address, "load": 0.5} | (known.extra or {}))
    assert kinds(it.hear(read_record(SfuState, rewritten), now=0.0)) == [Cordoned]
    assert it.refusal("s", now=0.0) is NotPlaceable.CORDONED


def test_the_number_of_sfus_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SFUS", 3)
    monkeypatch.setattr(module, "MAX_TOMBSTONES", 3)
    it = Directory()
    for n in range(9):
        it.hear(state(1, sfu=f"s{n}"), now=0.0)
    assert len(it) == 3


def test_a_record_that_vanished_is_not_placeable_from_the_next_reading_on() -> None:
    it = Directory()
    it.read_back([state(1)], now=0.0)
    it.read_back([state(2)], now=0.1)
    assert it.refusal("s", now=0.2) is None
    it.read_back([], now=1.0)
    assert it.refusal("s", now=1.0) is NotPlaceable.MISSING
    it.read_back([state(3)], now=2.0)
    assert it.refusal("s", now=2.0) is None
