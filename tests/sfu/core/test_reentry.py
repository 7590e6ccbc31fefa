"""The credential for coming back: one session, newest first, the one before until the player has spoken."""

from __future__ import annotations

from sfu.core.reentry import Reentries


def test_the_newest_token_opens_its_session_and_the_one_before_until_the_player_has_spoken() -> None:
    it = Reentries()
    it.renew("p", "one")
    it.renew("q", "other")
    it.renew("p", "two")
    assert (it.session("one"), it.session("two"), it.session("other")) == ("p", "p", "q")
    it.confirm("p")
    assert (it.session("one"), it.session("two")) == (None, "p")


def test_of_answers_that_were_lost_two_tokens_stay_at_most() -> None:
    it = Reentries()
    for token in ("one", "two", "three"):
        it.renew("p", token)
    assert [it.session(token) for token in ("one", "two", "three")] == [None, "p", "p"]


def test_an_ended_session_leaves_nothing_that_opens_it() -> None:
    it = Reentries()
    it.renew("p", "one")
    it.renew("p", "two")
    it.end("p")
    assert (it.session("one"), it.session("two"), it.session("")) == (None, None, None)
