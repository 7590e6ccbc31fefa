"""Whose connection to the SFU it was sent to came about, and whose did not."""

from __future__ import annotations

from router.core.sessions import Session
from router.core.tries import MAX_WAITING, TryBook, word_for
from shared.placing import Tries
from shared.tokens import ResumeClaims


def session(identity: str = "ann", player: str = "p1", room: str = "r") -> Session:
    return Session(ResumeClaims(player=player, room=room, identity=identity, epoch=1), wire=None, home_at=0.0)


def test_who_asks_again_and_excludes_the_sfu_has_failed_there() -> None:
    book, ann = TryBook(), session()
    book.sent(ann, "a", 7, now=0.0)
    assert book.asks_again(ann, ("x", "a"), now=20.0) == "a"
    assert book.asks_again(ann, ("x", "a"), now=20.0) == "", "once for each time it was sent there"
    word = word_for(ann)
    assert book.take() == [Tries(sfu="a", incarnation=7, tried=(word,), failed=(word,))]
    assert book.take() == []


def test_a_failure_is_that_of_the_run_that_the_player_was_sent_to() -> None:
    """An SFU that crashed under a burst of joins and is back is judged by what it does now."""
    book, ann, bob = TryBook(), session(), session("bob")
    book.sent(ann, "a", 7, now=0.0)
    book.sent(bob, "a", 8, now=5.0)
    assert book.asks_again(ann, ("a",), now=12.0) == "a"
    told = {each.incarnation: each.failed for each in book.take()}
    assert told == {7: (word_for(ann),), 8: ()}


def test_who_asks_again_for_another_reason_has_not_failed() -> None:
    book, ann = TryBook(), session()
    book.sent(ann, "a", 7, now=0.0)
    assert book.asks_again(ann, ("x",), now=20.0) == ""
    assert book.take() == [Tries(sfu="a", incarnation=7, tried=(word_for(ann),))]


def test_who_comes_back_later_had_been_there() -> None:
    book, ann = TryBook(), session()
    book.sent(ann, "a", 7, now=0.0)
    assert book.asks_again(ann, ("a",), now=31.0) == ""


def test_media_that_flowed_is_no_failure_though_the_sfu_is_excluded_later() -> None:
    book, ann = TryBook(), session()
    book.sent(ann, "a", 7, now=0.0)
    book.works(ann, "other")
    assert ann.trying == "a"
    book.works(ann, "a")
    assert book.asks_again(ann, ("a",), now=20.0) == ""


def test_a_player_is_one_word_across_its_sessions_and_another_in_each_room() -> None:
    assert word_for(session(player="p1")) == word_for(session(player="p2"))
    assert word_for(session(room="r")) != word_for(session(room="s"))
    assert word_for(session("ab", room="c")) != word_for(session("b", room="ca"))
    assert len(word_for(session("x" * 500))) == 16


def test_what_waits_for_the_store_is_bounded() -> None:
    book = TryBook()
    for n in range(MAX_WAITING + 50):
        book.sent(session(f"p{n}"), "a", 1, now=0.0)
    (tries,) = book.take()
    assert len(tries.tried) == MAX_WAITING
    book.sent(session(), "a", 1, now=0.0)
    assert len(book.take()) == 1
