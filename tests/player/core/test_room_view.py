"""What a player's application hears of the room."""

from __future__ import annotations

import random

from player.core import events as e
from player.core.room_view import RoomView
from shared.messages.player import RoomSnapshot, RoomUpdate
from shared.records import PlayerRecord, Presence, PublicationRecord

ANN, BOB = (PlayerRecord(player=name, identity=name) for name in ("ann", "bob"))


def publication(name: str, *, kind: str = "audio", sfu: str = "a", generation: int = 1) -> PublicationRecord:
    return PublicationRecord(publication=name, player="ann", kind=kind, sfu=sfu, generation=generation)


class World:
    def __init__(self) -> None:
        self.events: list[e.PlayerEvent] = []
        self.view = RoomView(
            rng=random.Random(1),
            own=frozenset({"mine"}),
            takes=lambda record: record.kind == "audio",
            tell=self.events.append,
        )
        self.view.roster.me = "me"

    def heard(self) -> list[e.PlayerEvent]:
        events, self.events[:] = list(self.events), []
        return events


def test_players_come_change_and_go_and_we_are_none_of_them() -> None:
    world = World()
    me = PlayerRecord(player="me", identity="me")
    world.view.snapshot(RoomSnapshot(players=(ANN, me)))
    assert world.heard() == [e.PlayerCame(player=ANN)]
    away = PlayerRecord(player="ann", identity="ann", presence=Presence(at_desk=False))
    world.view.update(RoomUpdate(players=(away, BOB)))
    assert world.heard() == [e.PlayerChanged(player=away), e.PlayerCame(player=BOB)]
    world.view.update(RoomUpdate(players=(away,)))
    assert world.heard() == [], "nothing is new"
    world.view.update(RoomUpdate(left=("bob", "stranger")))
    assert world.heard() == [e.PlayerWent(player=BOB)]
    world.view.snapshot(RoomSnapshot(players=(BOB,)))
    assert world.heard() == [e.PlayerWent(player=away), e.PlayerCame(player=BOB)]
    assert world.view.roster.players == {"bob": BOB}


def test_only_what_is_taken_is_told_of_and_a_move_is_no_news() -> None:
    world = World()
    taken, moved = publication("p"), publication("p", sfu="b", generation=2)
    world.view.snapshot(RoomSnapshot(publications=(taken, publication("film", kind="video"), publication("mine"))))
    assert world.heard() == [e.TrackPublished(record=taken)]
    world.view.update(RoomUpdate(publications=(moved,)))
    assert world.heard() == []
    assert world.view.follower.publications == {"p": moved}


def test_the_first_unit_is_told_of_once_until_the_publication_ends() -> None:
    world = World()
    taken = publication("p")
    world.view.snapshot(RoomSnapshot(publications=(taken,)))
    world.heard()
    assert world.view.hears("p", "a") == world.view.hears("p", "a") == taken
    assert world.heard() == [e.TrackHeard(record=taken, sfu="a")]
    effects = world.view.update(RoomUpdate(ended=("p",)))
    assert any(getattr(effect, "publication", "") == "p" for effect in effects)
    world.view.dropped("p")
    world.view.dropped("p")
    assert world.heard() == [e.TrackEnded(record=taken)]
    assert world.view.hears("p", "a") is None
