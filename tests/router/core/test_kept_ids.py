"""Ids whose session was replaced wait for their person, on whatever router, while the person is there."""

from __future__ import annotations

from router.core.bounds import Rejection, publication
from router.core.kept_ids import MAX_KEPT, KeptIds
from router.core.sessions import Session
from shared.messages.codes import Refusal
from shared.messages.player import Publish
from shared.records import PublicationRecord
from tests.router.core.test_room import World, remote, track

MIC = Publish(publication="mic", kind="audio", sfu="s1", generation=2)


def published(it: World, session: Session) -> PublicationRecord | Rejection:
    said = publication(MIC, session, it.room, known_sfu=True)
    if isinstance(said, PublicationRecord):
        it.room.put_publication(said)
    return said


def test_an_id_waits_for_its_person_whose_session_was_replaced_here() -> None:
    it = World()
    it.sits("old", identity="ann")
    mallory = it.sits("mallory")
    it.room.put_publication(track("mic", "old"))
    new = it.sits("new", epoch=2, identity="ann")
    it.room.detach_all("old")
    refused = published(it, mallory)
    assert isinstance(refused, Rejection)
    assert refused.code == Refusal.NOT_ALLOWED
    assert it.room.owned_by("new", "ann") == ["mic"], "the token for an SFU names it"
    assert it.room.owned_by("mallory", "mallory") == []
    assert isinstance(published(it, new), PublicationRecord)
    it.room.drop_publication("mic")
    assert isinstance(published(it, mallory), PublicationRecord), "ended by its owner: free for all"


def test_an_id_waits_for_its_person_who_came_back_on_another_router() -> None:
    it = World()
    mallory = it.sits("mallory")
    it.reads(remote("old", identity="ann"), remote("mallory", router="a"), tracks=(track("mic", "old"),))
    it.reads(remote("new", identity="ann", epoch=2), remote("mallory", router="a"))
    assert it.room.publications == {}
    assert isinstance(published(it, mallory), Rejection)
    it.reads(remote("mallory", router="a"))
    assert isinstance(published(it, mallory), PublicationRecord), "the person has left"


def test_a_new_session_may_publish_what_this_router_still_takes_for_the_old_ones() -> None:
    it = World()
    it.reads(remote("old", identity="ann"), tracks=(track("mic", "old"),))
    new = it.sits("new", epoch=2, identity="ann")
    assert it.room.owned_by("new", "ann") == ["mic"]
    assert isinstance(published(it, new), PublicationRecord)
    it.reads(remote("new", identity="ann", epoch=2, router="a"), tracks=(track("mic", "new", 2),))
    assert it.room.publications["mic"].player == "new"


def test_an_id_of_one_who_has_left_is_free() -> None:
    it = World()
    it.sits("ann")
    mallory = it.sits("mallory")
    it.room.put_publication(track("mic", "ann"))
    it.room.detach_all("ann")
    assert isinstance(published(it, mallory), PublicationRecord)


def test_they_are_bounded() -> None:
    kept = KeptIds()
    for number in range(MAX_KEPT + 1):
        kept.keep(str(number), "ann")
    assert len(kept.of("ann")) == MAX_KEPT
    assert kept.may_publish("0", "mallory")
    assert not kept.may_publish("1", "mallory")
