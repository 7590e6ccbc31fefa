"""Who has no media: `router/core/rooms.py`."""

from __future__ import annotations

from router.core.rooms import MAX_NAMED, HostedRooms
from router.core.sessions import Session
from shared.records import MissingMedia, PlayerRecord
from shared.tokens import ResumeClaims


class Wire:
    def put(self, frame: bytes) -> None: ...

    def end(self, code: int, reason: str) -> None: ...


def joined(rooms: HostedRooms, identity: str, *, name: str = "") -> Session:
    claims = ResumeClaims(player=f"p-{identity}", room="kitchen", identity=identity, name=name, epoch=1)
    session = Session(claims, wire=Wire(), home_at=0.0)
    room = rooms.host("kitchen")
    rooms.attach(room, session)
    room.attach(session, PlayerRecord(player=session.player, identity=identity))
    return session


def test_a_player_without_media_is_counted_and_named_until_it_has_some() -> None:
    rooms = HostedRooms(resume_window_s=25.0)
    ann, bob = joined(rooms, "ann", name="Ann"), joined(rooms, "bob")
    rooms.note_media(ann, ["receive", "send", "x" * 1000])
    rooms.note_media(bob, ["send"])
    assert rooms.without_media == 2
    assert rooms.who_without_media() == (
        MissingMedia(who="Ann", room="kitchen", missing=("send", "receive")),
        MissingMedia(who="bob", room="kitchen", missing=("send",)),
    )
    rooms.note_media(ann, [])
    assert [each.who for each in rooms.who_without_media()] == ["bob"]


def test_words_that_we_do_not_know_count_for_nothing() -> None:
    rooms = HostedRooms(resume_window_s=25.0)
    ann = joined(rooms, "ann")
    rooms.note_media(ann, (f"word {n}" for n in range(10**6)))
    assert rooms.without_media == 0


def test_one_that_left_or_lost_its_websocket_is_counted_no_longer() -> None:
    rooms = HostedRooms(resume_window_s=25.0)
    ann, bob = joined(rooms, "ann"), joined(rooms, "bob")
    for session in (ann, bob):
        rooms.note_media(session, ["send"])
    rooms.lose(ann, now=1.0)
    assert [each.who for each in rooms.who_without_media()] == ["bob"]
    rooms.end(bob)
    assert rooms.without_media == 0


def test_only_the_first_few_are_named() -> None:
    rooms = HostedRooms(resume_window_s=25.0)
    for number in range(MAX_NAMED + 5):
        rooms.note_media(joined(rooms, f"p{number}"), ["send"])
    assert rooms.without_media == MAX_NAMED + 5
    assert len(rooms.who_without_media()) == MAX_NAMED
