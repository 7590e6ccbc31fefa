"""A room: what is merged from Redis, what is told, who has to go."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from router.core.room import KEEP_ABSENT_S, Merged
from router.core.rooms import HostedRooms
from router.core.sessions import Session
from shared.records import PlayerRecord, Presence, PublicationRecord, RoomPlacement
from shared.tokens import ResumeClaims


def remote(player: str, *, epoch: int = 1, identity: str = "", router: str = "b") -> PlayerRecord:
    return PlayerRecord(player=player, identity=identity or player, epoch=epoch, router=router)


def track(publication: str, player: str, generation: int = 1, sfu: str = "s1") -> PublicationRecord:
    return PublicationRecord(publication=publication, player=player, kind="audio", generation=generation, sfu=sfu)


class Silent:
    """A websocket to which nothing is said."""

    def put(self, frame: bytes) -> None: ...

    def end(self, code: int, reason: str) -> None: ...


class World:
    def __init__(self) -> None:
        self.rooms = HostedRooms(resume_window_s=25.0)
        self.room = self.rooms.host("r")
        self.version = 0

    def sits(self, player: str, *, epoch: int = 1, identity: str = "") -> Session:
        claims = ResumeClaims(player=player, room="r", identity=identity or player, epoch=epoch)
        session = Session(claims, wire=None, home_at=0.0)
        self.rooms.attach(self.room, session)
        self.room.attach(session, session.record(router="a"))
        return session

    def reads(self, *players: PlayerRecord, tracks: tuple[PublicationRecord, ...] = (), **facts: Any) -> Merged:
        self.version += 1
        plain: dict[str, Any] = {
            "version": self.version,
            "players": {record.player: record for record in players},
            "publications": {record.publication: record for record in tracks},
            "placement": None,
            "router": "a",
            "now": 0.0,
        }
        return self.room.merge(**(plain | facts))


@pytest.fixture
def it() -> World:
    return World()


def test_changes_are_gathered_into_one_update(it: World) -> None:
    it.sits("me")
    it.reads(remote("p"), remote("q"), remote("me", router="a"), tracks=(track("t", "p"),))
    it.reads(remote("p"), remote("me", router="a"), tracks=(track("t", "p", 2),))
    update = it.room.take_update()
    assert update is not None
    assert [record.player for record in update.players] == ["me", "p"]
    assert update.left == ("q",)
    assert [record.generation for record in update.publications] == [2]
    assert it.room.take_update() is None


def test_redis_is_right_about_others_and_this_router_about_its_own(it: World) -> None:
    me = it.sits("me")
    mine = msgspec.structs.replace(it.room.players["me"], presence=Presence(at_desk=False))
    it.room.put_player(mine)
    it.reads(me.record(router="a"))
    assert it.room.players["me"] == mine


def test_a_publication_ended_here_does_not_come_back_with_a_late_reading(it: World) -> None:
    it.sits("me")
    it.room.put_publication(track("t", "me"))
    it.room.drop_publication("t")
    it.reads(remote("me", router="a"), tracks=(track("t", "me"),))
    assert it.room.publications == {}


def test_a_player_that_left_here_does_not_come_back_with_a_late_reading(it: World) -> None:
    me = it.sits("me")
    it.sits("other")
    it.rooms.end(me)
    it.reads(remote("me", router="a"), remote("other", router="a"), tracks=(track("t", "me"),))
    assert list(it.room.players) == ["other"]
    assert it.room.publications == {}


def test_an_older_reading_is_ignored(it: World) -> None:
    it.reads(remote("p"), version=9)
    it.reads(version=8)
    assert list(it.room.players) == ["p"]
    it.rooms.keep_absent(until=1.0)
    it.reads(remote("q"), version=8)
    assert sorted(it.room.players) == ["p", "q"], "unless Redis may have lost its data, on a host whose clock is behind"


def test_an_older_generation_never_replaces_a_newer_one(it: World) -> None:
    it.sits("me")
    it.reads(remote("p"), tracks=(track("t", "p", 3, "s2"),))
    it.reads(remote("p"), tracks=(track("t", "p", 2, "s1"),))
    assert it.room.publications["t"].sfu == "s2"


def test_a_newer_session_of_the_identity_elsewhere_replaces_the_one_here(it: World) -> None:
    me = it.sits("old", identity="ann", epoch=5)
    assert it.reads(remote("new", identity="ann", epoch=6)).replaced == [me]


def test_an_older_session_of_the_identity_elsewhere_replaces_none(it: World) -> None:
    it.sits("new", identity="ann", epoch=6)
    assert it.reads(remote("old", identity="ann", epoch=5)).replaced == []


def test_a_session_resumed_on_another_router_is_let_go(it: World) -> None:
    me = it.sits("me", epoch=5)
    assert it.reads(remote("me", epoch=5, router="b")).moved == [me]
    assert it.rooms.hand_over(me)
    assert it.rooms.sessions == 0


def test_a_session_taken_over_while_redis_was_away_is_not_let_go_for_what_redis_still_says(it: World) -> None:
    """Chaos, seed 12, round 116: its router was killed while Redis stood still, and it was closed for good."""
    me = it.sits("me", epoch=5)
    me.taken_over_blind, me.wire = True, Silent()
    before = remote("me", epoch=5, router="b")
    assert it.reads(before).moved == []
    assert it.room.players["me"].router == "a"
    assert it.reads(remote("me", epoch=5, router="a")).moved == []
    assert it.reads(before).moved == [me], "once Redis has named us, another router is a newer one"
    me.taken_over_blind, me.wire = True, None
    assert it.reads(before).moved == [me], "a player that has left us may be there"


def test_what_redis_lacks_of_ours_is_to_be_put_back(it: World) -> None:
    it.sits("me")
    it.room.put_publication(track("t", "me", 2))
    merged = it.reads(remote("p"), tracks=(track("t", "me", 1),))
    assert (merged.missing_players, merged.missing_publications) == (["me"], ["t"])


def test_a_player_that_is_not_listed_has_left_unless_redis_may_have_lost_it(it: World) -> None:
    it.sits("me")
    it.reads(remote("p"), remote("q"))
    it.rooms.keep_absent(until=20.0)
    it.reads(remote("p"), now=19.0)
    assert "q" in it.room.players
    assert it.room.keeps_absent, "so that it is read again"
    it.reads(remote("p"), now=20.0)
    assert "q" not in it.room.players
    assert not it.room.keeps_absent


def test_a_room_that_vanished_from_redis_keeps_its_people_for_a_while(it: World) -> None:
    it.sits("me")
    it.reads(remote("p"))
    it.reads(version=0, now=100.0)
    assert "p" in it.room.players
    it.version = 100
    it.reads(remote("me", router="a"), now=100.0 + KEEP_ABSENT_S)
    assert "p" not in it.room.players


def test_a_room_touches_homes_publications_placement_and_places_players_move_to(it: World) -> None:
    me = it.sits("me")
    it.room.put_player(msgspec.structs.replace(it.room.players["me"], sfu="home"))
    it.room.put_publication(track("t", "me", sfu="carrier"))
    it.room.place(RoomPlacement(sfu="placed"))
    it.room.move(me, "next")
    assert it.room.sfus == {"home", "carrier", "placed", "next"}
    assert it.room.carriers() == {"carrier", "placed"}
    it.room.move(me, "")
    assert "next" not in it.room.sfus
    assert [room.name for room in it.rooms.touching("carrier")] == ["r"]


def test_an_older_placement_does_not_replace_a_newer_one(it: World) -> None:
    it.room.place(RoomPlacement(sfu="new", generation=2))
    it.room.place(RoomPlacement(sfu="old", generation=1))
    assert it.room.placement == RoomPlacement(sfu="new", generation=2)


def test_a_session_waits_for_the_resume_window_and_no_longer(it: World) -> None:
    me, other = it.sits("me"), it.sits("other")
    it.rooms.lose(me, now=10.0)
    it.rooms.lose(other, now=11.0)
    assert it.rooms.expired(now=34.9) == []
    assert it.rooms.expired(now=35.0) == [me]
    assert it.rooms.end(me)
    assert not it.rooms.end(me)
    assert it.rooms.has_ended("me")
    assert it.rooms.expired(now=35.0) == []


def test_a_resumed_session_no_longer_expires(it: World) -> None:
    me = it.sits("me")
    it.rooms.lose(me, now=10.0)
    it.rooms.attach(it.room, me)
    assert it.rooms.expired(now=1000.0) == []
    assert it.rooms.sessions == 1


def test_a_room_without_sessions_is_forgotten(it: World) -> None:
    me = it.sits("me")
    it.reads(remote("p"))
    it.rooms.end(me)
    assert it.rooms.get("r") is None
