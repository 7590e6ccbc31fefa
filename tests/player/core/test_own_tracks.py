"""What a player publishes, and what the room knows of it."""

from __future__ import annotations

from player.core.own_tracks import OwnTracks
from player.core.track import Numbers
from player.core.tracks import OpusTrack


def track(name: str) -> OpusTrack:
    return OpusTrack(publication=name, mid="0", numbers=Numbers(1, 2, 3, 4, 5), at=0.0, source="mic")


def known(own: OwnTracks) -> list[str]:
    return [record.publication for record in own.records(player="me", sfu="a", generation=3)]


def test_a_router_is_told_of_what_the_room_knows_and_of_nothing_else() -> None:
    own = OwnTracks([track("first")])
    own.add(track("second"))
    assert known(own) == []
    own.announced("second")
    assert known(own) == ["second"]
    (record,) = own.records(player="me", sfu="a", generation=3)
    assert (record.player, record.kind, record.source, record.sfu, record.generation) == ("me", "audio", "mic", "a", 3)
    own.new_session()
    assert known(own) == []


def test_a_track_that_is_to_end_is_sent_until_it_is_taken_out() -> None:
    first, second = track("first"), track("second")
    own = OwnTracks([first, second])
    own.announced("first")
    assert own.end(first)
    assert not own.end(first)
    assert (own.publications, list(own.living), known(own)) == (("first", "second"), ["second"], [])
    assert own.take_ended() == [first]
    assert (own.publications, own.take_ended()) == (("second",), [])
