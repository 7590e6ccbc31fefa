"""A room on this SFU: ids belong to their first player, newer copies replace older ones, counts are told on change."""

from __future__ import annotations

from dataclasses import replace

from sfu.core.room import SfuRoom
from sfu.core.sdp.formats import MediaFormat
from sfu.core.sdp.subscribe import Carried

OPUS = MediaFormat(kind="audio", name="opus")


def carried(publication: str = "mic", *, player: str = "alice", generation: int = 1, producer: int = 1) -> Carried:
    return Carried(publication=publication, generation=generation, player=player, format=OPUS, producer=producer)


def test_an_id_belongs_to_the_player_that_had_it_first() -> None:
    room = SfuRoom("r")
    room.carry(carried())
    assert room.refuses("mic", player="mallory", generation=9)
    assert not room.refuses("mic", player="alice", generation=1)


def test_an_older_generation_is_refused() -> None:
    room = SfuRoom("r")
    room.carry(carried(generation=3))
    assert "generation 3" in room.refuses("mic", player="alice", generation=2)
    assert not room.refuses("mic", player="alice", generation=4)


def test_a_new_session_of_a_person_takes_over_what_the_old_one_left() -> None:
    room = SfuRoom("r")
    room.carry(replace(carried("mic", player="old", generation=3), identity="ann"))
    assert not room.refuses("mic", player="new", generation=4, identity="ann")
    assert "generation 3" in room.refuses("mic", player="new", generation=2, identity="ann")
    assert room.refuses("mic", player="new", generation=4, identity="mallory")
    assert room.refuses("mic", player="new", generation=4)


def test_the_end_of_an_older_copy_does_not_end_the_newer() -> None:
    room = SfuRoom("r")
    room.wants["bob"] = ("mic",)
    room.carry(carried(producer=1))
    room.carry(carried(producer=2, generation=2))
    assert room.end("mic", producer=1) == frozenset()
    assert room.wanted_by("bob")["mic"].producer == 2
    assert room.end("mic", producer=2) == {"bob"}
    assert room.wanted_by("bob") == {}


def test_who_wants_what_is_here_comes_in_the_players_order() -> None:
    room = SfuRoom("r")
    for name in ("a", "b", "c"):
        room.carry(carried(name))
    room.wants["bob"] = ("c", "missing", "a")
    assert list(room.wanted_by("bob")) == ["c", "a"]


def test_counts_are_told_when_they_change() -> None:
    room = SfuRoom("r")
    assert room.getting("mic", "bob", True) == 1
    assert room.getting("mic", "bob", True) is None
    assert room.getting("mic", "carol", True) == 2
    assert room.getting("mic", "bob", False) == 1
    assert room.getting("mic", "carol", False) == 0
    assert room.getting("mic", "carol", False) is None
    assert room.gets == {}, "nothing is kept of what no consumer gets"


def test_a_room_without_players_can_be_forgotten() -> None:
    room = SfuRoom("r", players={"a"})
    room.wants["a"] = ("x",)
    room.leave("a")
    assert room.empty
    assert room.wants == {}
