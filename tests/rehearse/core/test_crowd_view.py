"""What bots say, sorted into who is where, who hears whom, and who was told, moved or came back."""

from __future__ import annotations

from rehearse.core.crowd_view import CrowdView
from rehearse.core.ending import Ending


def joined(*bots: str, room: str = "r", sfu: str = "a") -> CrowdView:
    """Bots of one room that publish to one SFU and hear each other."""
    view = CrowdView()
    for bot in bots:
        view.handle({"event": "joined", "t": 1.0, "bot": bot, "room": room, "router": "router-1"})
        view.handle({"event": "switched", "t": 1.1, "bot": bot, "room": room, "sfu": sfu, "reason": "join"})
    for bot in bots:
        for other in set(bots) - {bot}:
            for kind in ("audio", "video"):
                view.handle({"event": "hearing", "t": 1.2, "bot": bot, "room": room, "publication": f"{kind}-{other}"})
    return view


def test_all_hear_each_other_once_each_has_both_tracks_of_all_others() -> None:
    view = joined("x", "y", "z")
    assert view.all_hear(3)
    assert not view.all_hear(4)
    assert view.missing(4) == "1 have not joined"
    view.bots["x"].hearing.discard("video-z")
    assert not view.all_hear(3)
    assert view.missing(3) == "x lacks 1"


def test_a_bot_alone_in_its_room_hears_everybody_but_must_have_arrived() -> None:
    view = joined("x")
    assert view.all_hear(1)
    view.handle({"event": "evicted", "t": 2.0, "bot": "x", "sfu": "a"})
    assert not view.all_hear(1)


def test_players_follow_their_moves() -> None:
    view = joined("x", "y")
    assert view.on("a") == {"x", "y"}
    view.handle({"event": "switched", "t": 2.0, "bot": "x", "sfu": "b", "reason": "cordoned"})
    assert (view.on("a"), view.on("b")) == ({"y"}, {"x"})


def test_facts_go_to_the_ending_of_their_sfu() -> None:
    view = joined("x", "y")
    ending = Ending(sfu="a", on_it=frozenset(view.on("a")), began=2.0)
    other = Ending(sfu="b", on_it=frozenset(), began=2.0)
    view.watch(ending)
    view.watch(other)
    view.handle({"event": "cordoned", "t": 2.5, "bot": "x", "sfu": "a"})
    view.handle({"event": "moved", "t": 3.0, "bot": "x", "sfu": "b", "left": "a"})
    assert (ending.told, ending.moved) == ({"x": 2.5}, {"x": 3.0})
    assert ending.never_told == {"y"}
    view.handle({"event": "rejoined", "t": 4.0, "bot": "y", "sfu": "b"})
    assert ending.rejoined == {"y": 4.0}
    assert (other.told, other.moved, other.rejoined) == ({}, {}, {})


def test_a_player_that_was_not_on_the_sfu_counts_as_told_but_not_as_moved() -> None:
    view = joined("x")
    ending = Ending(sfu="b", on_it=frozenset(), began=2.0)
    view.watch(ending)
    view.handle({"event": "cordoned", "t": 2.5, "bot": "x", "sfu": "b"})
    view.handle({"event": "moved", "t": 3.0, "bot": "x", "sfu": "a", "left": "b"})
    assert (ending.told, ending.moved) == ({"x": 2.5}, {})


def test_failures_are_told_with_their_reason_and_resumes_are_counted() -> None:
    view = joined("x")
    view.handle({"event": "failed-connection", "t": 2.0, "bot": "x", "sfu": "b", "reason": "dtls-timeout"})
    view.handle({"event": "resumed", "t": 2.0, "bot": "x", "router": "router-2"})
    assert [str(failure) for failure in view.failures] == ["x to b: dtls-timeout"]
    assert (view.bots["x"].router, view.bots["x"].resumes) == ("router-2", 1)


def test_unfamiliar_words_change_nothing() -> None:
    view = CrowdView()
    view.handle({"event": "started", "t": 1.0, "bots": 4})
    view.handle({"bot": 7})
    view.handle({})
    assert view.bots == {}


def test_a_bot_that_has_left_is_not_missed_and_says_no_more() -> None:
    view = joined("x", "y", "z")
    view.handle({"event": "left", "t": 3.0, "bot": "z", "room": "r", "publications": ["audio-z", "video-z"]})
    view.handle({"event": "evicted", "t": 3.1, "bot": "z", "sfu": "a"})
    view.handle({"event": "hearing", "t": 3.2, "bot": "x", "room": "r", "publication": "audio-z"})
    assert view.all_hear(2)
    assert view.evicted == []
    view.bots["x"].hearing.discard("video-y")
    assert not view.all_hear(2), "what was heard of z makes up for nothing of y"


def test_moves_are_kept_in_their_order() -> None:
    view = joined("x", "y")
    for at, bot in ((4.0, "y"), (5.0, "x")):
        view.handle({"event": "moved", "t": at, "bot": bot, "room": "r", "left": "a", "sfu": "b"})
    assert [(move.bot, move.left, move.sfu, move.at) for move in view.moves] == [
        ("y", "a", "b", 4.0),
        ("x", "a", "b", 5.0),
    ]
