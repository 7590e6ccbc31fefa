"""What every store promises, on each backend: the fake that other tests rely on, and the real servers."""

from __future__ import annotations

import asyncio
import random
from contextlib import aclosing

import msgspec
import pytest

from shared.placing import Offer
from shared.records import (
    CommandVerb,
    Drain,
    DrainReport,
    ExitScope,
    PlayerRecord,
    PublicationRecord,
    RouterRecord,
    SfuState,
    SfuStatus,
)
from shared.store.answers import Gap, RoomRecord, Wake, WakeKind
from tests.shared.worlds import World, wish

DEADLINE_S = 30.0


def state(incarnation: int = 1, revision: int = 1, *, sfu: str = "sfu-1", **fields: object) -> SfuState:
    return SfuState(address=f"ws://{sfu}", sfu=sfu, incarnation=incarnation, revision=revision, **fields)  # type: ignore[arg-type]


def cordoned(incarnation: int = 1, revision: int = 1) -> SfuState:
    return state(incarnation, revision, status=SfuStatus.CORDONED.value, drain=Drain(reason="deploy"))


def player(session: str, identity: str = "", **fields: object) -> PlayerRecord:
    return PlayerRecord(player=session, identity=identity or f"id-of-{session}", **fields)  # type: ignore[arg-type]


def publication(name: str, owner: str, generation: int = 1, sfu: str = "sfu-1") -> PublicationRecord:
    return PublicationRecord(publication=name, player=owner, kind="video", sfu=sfu, generation=generation)


# --- SFUs ---


async def test_an_sfu_is_silent_since_its_last_revision(world: World) -> None:
    """Not since the record was written: a router goes on writing what a frozen SFU said last."""
    await world.store.put_sfu(state(1, 1))
    (fresh,) = await world.other.hear_sfus()
    assert fresh.silent_for_s is not None
    assert fresh.silent_for_s < 5.0
    await world.age_sfu("sfu-1", 7.0)
    await world.other.put_sfu(state(1, 1))
    (frozen,) = await world.store.hear_sfus()
    assert frozen.silent_for_s is not None
    assert 7.0 <= frozen.silent_for_s < 12.0
    assert frozen.state.revision == 1
    assert not (await world.store.put_sfu(state(1, 0))).accepted
    assert ((await world.store.hear_sfus())[0].silent_for_s or 0.0) >= 7.0


@pytest.mark.parametrize("news", [(1, 2), (2, 1)])
async def test_a_new_revision_or_run_is_news(world: World, news: tuple[int, int]) -> None:
    await world.store.put_sfu(state(1, 1))
    await world.age_sfu("sfu-1", 7.0)
    await world.store.put_sfu(state(*news))
    (heard,) = await world.other.hear_sfus()
    assert heard.silent_for_s is not None
    assert heard.silent_for_s < 5.0


async def test_an_sfu_without_versions_has_news_each_time(world: World) -> None:
    await world.store.put_sfu(state(0, 0))
    await world.age_sfu("sfu-1", 7.0)
    await world.store.put_sfu(state(0, 0))
    assert ((await world.other.hear_sfus())[0].silent_for_s or 0.0) < 5.0


async def test_a_record_that_an_older_router_wrote_has_no_known_age(world: World) -> None:
    await world.write_raw_sfu("sfu-1", b'{"address":"ws://sfu-1","sfu":"sfu-1","incarnation":1,"revision":4}')
    assert [heard.silent_for_s for heard in await world.store.hear_sfus()] == [None]


async def test_a_state_comes_back_with_the_time_it_was_first_seen(world: World) -> None:
    before = await world.store.now()
    put = await world.store.put_sfu(state(load=0.5))
    (read,) = await world.other.read_sfus()
    assert put.accepted
    assert put.started_at is not None
    assert before <= put.started_at <= await world.store.now()
    assert read == msgspec.structs.replace(state(load=0.5), started_at=put.started_at)


@pytest.mark.parametrize(
    ("old", "new"),
    [((2, 5), (2, 4)), ((2, 5), (1, 9)), ((10, 1), (9, 9)), ((2**62, 1), (2**62 - 1, 7)), ((5, 10), (5, 9))],
)
async def test_an_older_state_is_refused(world: World, old: tuple[int, int], new: tuple[int, int]) -> None:
    await world.store.put_sfu(state(*old))
    put = await world.other.put_sfu(state(*new, load=0.9))
    assert not put.accepted
    assert (put.incarnation, put.revision) == old
    assert [(s.incarnation, s.revision, s.load) for s in await world.store.read_sfus()] == [(*old, None)]


@pytest.mark.parametrize(("old", "new"), [((2, 5), (2, 5)), ((2, 5), (2, 6)), ((2, 5), (3, 0)), ((9, 1), (10, 1))])
async def test_an_equal_or_newer_state_is_written(world: World, old: tuple[int, int], new: tuple[int, int]) -> None:
    await world.store.put_sfu(state(*old))
    assert (await world.other.put_sfu(state(*new, load=0.9))).accepted
    assert [(s.incarnation, s.revision, s.load) for s in await world.store.read_sfus()] == [(*new, 0.9)]


async def test_another_process_with_the_same_id_is_refused_while_the_first_writes_news(world: World) -> None:
    await world.store.put_sfu(state(1, 1, boot="first"))
    put = await world.other.put_sfu(state(2, 1, boot="second"))
    assert (put.accepted, put.taken, put.incarnation) == (False, True, 1)
    assert [read.boot for read in await world.store.read_sfus()] == ["first"]
    assert (await world.store.put_sfu(state(1, 2, boot="first"))).accepted
    assert (await world.other.put_sfu(state(2, 1))).accepted, "an older router says nothing of boots"
    assert (await world.other.put_sfu(state(2, 2, boot="second"))).accepted


async def test_the_last_word_of_a_dead_process_said_again_keeps_no_other_out(world: World) -> None:
    await world.store.put_sfu(state(1, 1, boot="first"))
    await world.store.remove_sfu("other", 1)
    if hasattr(world, "at"):
        world.at += 2.0
        await world.store.put_sfu(state(1, 1, boot="first"))
        world.at += 1.0
        assert (await world.other.put_sfu(state(2, 1, boot="second"))).accepted


async def test_an_sfu_that_said_goodbye_leaves_its_id_to_the_next_process(world: World) -> None:
    await world.store.put_sfu(state(1, 1, boot="first"))
    await world.store.remove_sfu("sfu-1", 1)
    assert (await world.other.put_sfu(state(2, 1, boot="second"))).accepted


async def test_started_at_stays_for_one_incarnation_and_is_new_for_the_next(world: World) -> None:
    first = await world.store.put_sfu(state(1, 1))
    again = await world.store.put_sfu(state(1, 2))
    await world.expire_sfu("sfu-1")
    back = await world.store.put_sfu(state(1, 3))
    if hasattr(world, "at"):
        world.at += 1.0
    restarted = await world.store.put_sfu(state(2, 1))
    assert first.started_at == again.started_at == back.started_at
    assert first.started_at is not None
    assert restarted.started_at is not None
    assert restarted.started_at > first.started_at


async def test_cordoned_at_is_set_once_and_cleared_by_online(world: World) -> None:
    assert (await world.store.put_sfu(state(1, 1))).cordoned_at is None
    since = (await world.store.put_sfu(cordoned(1, 2))).cordoned_at
    assert since is not None
    assert (await world.other.put_sfu(cordoned(1, 3))).cordoned_at == since
    terminating = state(1, 4, status="TERMINATING", drain=Drain())
    assert (await world.store.put_sfu(terminating)).cordoned_at == since
    (read,) = await world.other.read_sfus()
    assert read.drain is not None
    assert read.drain.since_at == since
    assert (await world.store.put_sfu(state(1, 5, status="ONLINE"))).cordoned_at is None
    assert (await world.store.put_sfu(state(2, 1))).cordoned_at is None


async def test_a_status_of_a_newer_version_leaves_cordoned_at_alone(world: World) -> None:
    since = (await world.store.put_sfu(cordoned(1, 1))).cordoned_at
    assert (await world.store.put_sfu(state(1, 2, status="MELTING"))).cordoned_at == since


async def test_times_that_the_sfu_repeats_survive_the_loss_of_the_store(world: World) -> None:
    put = await world.store.put_sfu(cordoned(1, 1))
    await world.lose_everything()
    repeated = state(1, 2, status="CORDONED", started_at=put.started_at, drain=Drain(since_at=put.cordoned_at))
    again = await world.store.put_sfu(repeated)
    assert again.started_at == pytest.approx(put.started_at, abs=1e-5)
    assert again.cordoned_at == pytest.approx(put.cordoned_at, abs=1e-5)


async def test_a_time_after_now_is_not_believed(world: World) -> None:
    later = await world.store.now() + 3600
    put = await world.store.put_sfu(state(1, 1, started_at=later))
    assert put.started_at is not None
    assert put.started_at < later


async def test_unknown_fields_and_empty_arrays_and_big_numbers_come_back_unchanged(world: World) -> None:
    extra = {"later": {"list": [], "object": {}, "big": 2**60 + 1, "pi": 3.141592653589793}}
    await world.store.put_sfu(state(extra=extra))
    (read,) = await world.store.read_sfus()
    assert read.extra == extra


async def test_an_expired_sfu_is_gone_and_can_come_back(world: World) -> None:
    await world.store.put_sfu(state(sfu="sfu-1"))
    await world.store.put_sfu(state(sfu="sfu-2"))
    await world.expire_sfu("sfu-1")
    assert [s.sfu for s in await world.store.read_sfus()] == ["sfu-2"]
    await world.store.put_sfu(state(1, 2, sfu="sfu-1"))
    assert [s.sfu for s in await world.store.read_sfus()] == ["sfu-1", "sfu-2"]


async def test_an_old_programs_record_is_read_and_can_be_written_over(world: World) -> None:
    await world.write_raw_sfu("ws://old", b'{"address":"ws://old","load":0.25}')
    (read,) = await world.store.read_sfus()
    assert read == SfuState(address="ws://old", load=0.25)
    assert (await world.store.put_sfu(read)).accepted
    assert (await world.store.put_sfu(read)).accepted


async def test_an_old_program_may_write_over_a_new_ones_record(world: World) -> None:
    await world.store.put_sfu(state(7, 3))
    await world.write_raw_sfu("sfu-1", b'{"address":"ws://sfu-1","load":0.5}')
    (read,) = await world.store.read_sfus()
    assert read == SfuState(address="ws://sfu-1", load=0.5, sfu="sfu-1")
    assert (await world.store.put_sfu(state(7, 4))).accepted
    assert [s.revision for s in await world.store.read_sfus()] == [4]


async def test_a_removed_sfu_stays_gone_against_late_writes(world: World) -> None:
    await world.store.put_sfu(state(3, 8))
    assert await world.other.remove_sfu("sfu-1", 3)
    assert await world.store.read_sfus() == []
    late = await world.store.put_sfu(state(3, 7))
    assert not late.accepted
    assert late.incarnation == 3
    assert not (await world.store.put_sfu(state(3, 9))).accepted
    assert (await world.store.put_sfu(state(4, 1))).accepted


async def test_a_newer_incarnation_is_not_removed_in_an_older_ones_name(world: World) -> None:
    await world.store.put_sfu(state(4, 1))
    assert not await world.store.remove_sfu("sfu-1", 3)
    assert [s.incarnation for s in await world.store.read_sfus()] == [4]


async def test_an_sfu_without_incarnation_can_be_removed_and_come_back(world: World) -> None:
    await world.store.put_sfu(state(0, 0))
    assert await world.store.remove_sfu("sfu-1", 0)
    assert (await world.store.put_sfu(state(0, 0))).accepted


@pytest.mark.parametrize(
    "raw", [b"", b"null", b"[]", b"{}", b"\xff\xfe", b'{"address":5}', b"{" * 5000, b'{"address":"x","sfu":"other"}']
)
async def test_a_bad_record_is_left_out_and_counted(world: World, raw: bytes) -> None:
    await world.store.put_sfu(state())
    await world.write_raw_sfu("bad", raw)
    assert [s.sfu for s in await world.store.read_sfus()] == ["sfu-1"]
    assert world.store.counts["bad-record"] == 1
    assert world.store.healthy


# --- placement ---


async def test_a_room_keeps_its_sfu_until_that_is_refused(world: World) -> None:
    first = await world.store.place_room("room", wish("a", "b"))
    assert (first.placement.sfu, first.placement.generation, first.fresh) == ("a", 1, True)
    second = await world.other.place_room("room", wish("b", "c"))
    assert (second.placement, second.fresh) == (first.placement, False)
    assert (await world.other.read_room("room")).placement == first.placement


async def test_a_room_moves_off_a_refused_sfu_with_a_new_generation(world: World) -> None:
    await world.store.place_room("room", wish("a", "b"))
    moved = await world.store.place_room("room", wish("c", "b", refuse=("x", "a")))
    assert (moved.placement.sfu, moved.placement.generation, moved.fresh) == ("c", 2, True)
    assert (await world.store.read_room("room")).placement == moved.placement


async def test_a_room_that_the_store_has_lost_stays_where_the_caller_knows_it(world: World) -> None:
    placed = await world.store.place_room("room", wish("a", keep=Offer(sfu="b", figure=9.0)))
    assert placed.placement.sfu == "b"


async def test_many_routers_at_once_agree_on_one_sfu(world: World) -> None:
    wishes = [wish(*sfus) for sfus in ("abc", "bca", "cab")] * 10
    stores = (world.store, world.other)
    placed = await asyncio.gather(*(stores[i % 2].place_room("room", each) for i, each in enumerate(wishes)))
    assert len({each.placement for each in placed}) == 1
    assert [each.fresh for each in placed].count(True) == 1
    assert placed[0].placement.generation == 1


async def test_a_placement_needs_an_offer(world: World) -> None:
    with pytest.raises(ValueError, match="offer"):
        await world.store.place_room("room", wish())


async def test_a_new_room_has_no_placement(world: World) -> None:
    assert (await world.store.read_room("room")).placement is None


# --- players ---


async def test_the_newest_session_of_an_identity_wins(world: World) -> None:
    first = await world.store.enter_room("room", player("p1", "bob"))
    await world.store.put_publication("room", publication("track", "p1"))
    second = await world.other.enter_room("room", player("p2", "bob"))
    assert first.replaced == ()
    assert second.replaced == ("p1",)
    assert second.epoch > first.epoch
    room = await world.store.read_room("room")
    assert room.players == {"p2": player("p2", "bob", epoch=second.epoch)}
    assert room.publications == {}


async def test_other_identities_are_not_replaced(world: World) -> None:
    await world.store.enter_room("room", player("p1", "bob"))
    assert (await world.store.enter_room("room", player("p2", "bo"))).replaced == ()
    assert set((await world.store.read_room("room")).players) == {"p1", "p2"}


async def test_the_same_session_may_enter_twice(world: World) -> None:
    first = await world.store.enter_room("room", player("p1", "bob"))
    await world.store.put_publication("room", publication("track", "p1"))
    again = await world.store.enter_room("room", player("p1", "bob"))
    assert again.replaced == ()
    assert again.epoch > first.epoch
    assert set((await world.store.read_room("room")).publications) == {"track"}


async def test_a_write_of_an_older_session_is_refused(world: World) -> None:
    old = await world.store.enter_room("room", player("p1", "bob"))
    new = await world.store.enter_room("room", player("p2", "bob"))
    assert not await world.other.put_player("room", player("p1", "bob", epoch=old.epoch))
    assert await world.other.put_player("room", player("p2", "bob", epoch=new.epoch, name="Bob"))
    assert (await world.store.read_room("room")).players["p2"].name == "Bob"


async def test_a_late_write_of_a_session_that_was_replaced_is_refused_even_after_the_newer_left(world: World) -> None:
    old = await world.store.enter_room("room", player("p1", "bob"))
    await world.store.enter_room("room", player("p2", "bob"))
    await world.store.leave_room("room", "p2")
    assert not await world.store.put_player("room", player("p1", "bob", epoch=old.epoch))
    assert (await world.store.read_room("room")).players == {}


async def test_after_the_loss_of_the_store_sessions_come_back_and_the_newest_still_wins(world: World) -> None:
    old = await world.store.enter_room("room", player("p1", "bob"))
    await world.lose_everything()
    new = await world.store.enter_room("room", player("p2", "bob"))
    if hasattr(world, "at"):
        assert new.epoch == old.epoch
    else:
        assert new.epoch > old.epoch
    assert not await world.other.put_player("room", player("p1", "bob", epoch=old.epoch))
    assert await world.other.put_player("room", player("p3", "ann", epoch=old.epoch))
    assert set((await world.store.read_room("room")).players) == {"p2", "p3"}


async def test_a_newer_session_that_is_put_back_replaces_an_older_one(world: World) -> None:
    assert await world.store.put_player("room", player("p1", "bob", epoch=5))
    await world.store.put_publication("room", publication("track", "p1"))
    assert await world.store.put_player("room", player("p2", "bob", epoch=6))
    room = await world.store.read_room("room")
    assert set(room.players) == {"p2"}
    assert room.publications == {}


async def test_leaving_takes_the_publications_along_and_no_others(world: World) -> None:
    for name in ("p1", "p2"):
        await world.store.enter_room("room", player(name))
        await world.store.put_publication("room", publication(f"track-{name}", name))
    await world.store.leave_room("room", "p1")
    room = await world.store.read_room("room")
    assert set(room.players) == {"p2"}
    assert set(room.publications) == {"track-p2"}


async def test_renewing_tells_who_is_missing(world: World) -> None:
    await world.store.enter_room("room", player("p1"))
    assert await world.store.renew_room("room", ["p1", "p2"]) == ("p2",)
    assert await world.store.renew_room("elsewhere", ["p1"]) == ("p1",)
    assert await world.store.renew_room("room", []) == ()


async def test_a_player_whose_lease_ran_out_has_left_with_its_publications(world: World) -> None:
    await world.store.enter_room("room", player("p1"))
    await world.store.enter_room("room", player("p2"))
    await world.store.put_publication("room", publication("track", "p1"))
    before = await world.store.room_versions(["room"])
    await world.expire_lease("room", "p1")
    # A router that only watches versions must notice too.
    assert (await world.other.room_versions(["room"]))["room"] > before["room"]
    room = await world.store.read_room("room")
    assert set(room.players) == {"p2"}
    assert room.publications == {}
    assert await world.store.renew_room("room", ["p1"]) == ("p1",)


async def test_reading_a_room_ends_leases_that_ran_out(world: World) -> None:
    await world.store.enter_room("room", player("p1"))
    await world.expire_lease("room", "p1")
    assert (await world.store.read_room("room")).players == {}


async def test_a_renewal_comes_in_time_until_a_reader_looks(world: World) -> None:
    await world.store.enter_room("room", player("p1"))
    await world.expire_lease("room", "p1")
    assert await world.store.renew_room("room", ["p1"]) == ()
    assert set((await world.store.read_room("room")).players) == {"p1"}


# --- publications ---


async def test_a_higher_generation_moves_a_publication(world: World) -> None:
    await world.store.enter_room("room", player("p1"))
    assert await world.store.put_publication("room", publication("track", "p1", 1, "a"))
    assert await world.other.put_publication("room", publication("track", "p1", 2, "b"))
    assert not await world.store.put_publication("room", publication("track", "p1", 1, "a"))
    assert (await world.store.read_room("room")).publications["track"].sfu == "b"


async def test_the_same_generation_with_other_content_is_refused_and_with_the_same_is_fine(world: World) -> None:
    await world.store.enter_room("room", player("p1"))
    await world.store.put_publication("room", publication("track", "p1", 2, "a"))
    version = await world.store.room_versions(["room"])
    assert await world.other.put_publication("room", publication("track", "p1", 2, "a"))
    assert not await world.other.put_publication("room", publication("track", "p1", 2, "b"))
    assert await world.store.room_versions(["room"]) == version


async def test_no_player_takes_anothers_publication(world: World) -> None:
    for name in ("p1", "p2"):
        await world.store.enter_room("room", player(name))
    await world.store.put_publication("room", publication("track", "p1"))
    assert not await world.store.put_publication("room", publication("track", "p2", 9))
    await world.store.remove_publication("room", "track", "p2")
    assert (await world.store.read_room("room")).publications["track"].player == "p1"


async def test_a_removed_publication_is_gone_and_its_id_is_free(world: World) -> None:
    for name in ("p1", "p2"):
        await world.store.enter_room("room", player(name))
    await world.store.put_publication("room", publication("one", "p1", 4))
    await world.store.put_publication("room", publication("two", "p1"))
    await world.store.remove_publication("room", "one", "p1")
    assert set((await world.store.read_room("room")).publications) == {"two"}
    assert await world.store.put_publication("room", publication("one", "p2", 1))


async def test_a_publication_that_comes_before_its_player_goes_with_its_lease(world: World) -> None:
    await world.store.put_publication("room", publication("track", "p1"))
    assert set((await world.store.read_room("room")).publications) == {"track"}
    await world.expire_lease("room", "p1")
    assert (await world.store.read_room("room")).publications == {}


# --- rooms ---


async def test_every_change_raises_the_version_and_nothing_else_does(world: World) -> None:
    store, seen = world.store, [0]

    async def version() -> int:
        return (await store.room_versions(["room"]))["room"]

    await store.place_room("room", wish("a"))
    seen.append(await version())
    entered = await store.enter_room("room", player("p1"))
    seen.append(await version())
    await store.put_player("room", player("p1", epoch=entered.epoch, name="New"))
    seen.append(await version())
    await store.put_publication("room", publication("track", "p1"))
    seen.append(await version())
    assert (await store.read_room("room")).version == seen[-1]

    await store.put_player("room", player("p1", epoch=entered.epoch, name="New"))
    await store.renew_room("room", ["p1"])
    await store.place_room("room", wish("a"))
    await store.leave_room("room", "nobody")
    await store.remove_publication("room", "nothing", "p1")
    assert await version() == seen[-1]

    await store.remove_publication("room", "track", "p1")
    seen.append(await version())
    await store.leave_room("room", "p1")
    seen.append(await version())
    assert seen == sorted(set(seen))


async def test_a_room_that_was_lost_never_has_an_old_version_again(world: World) -> None:
    await world.store.enter_room("room", player("p1"))
    version = (await world.store.room_versions(["room"]))["room"]
    await world.lose_everything()
    if hasattr(world, "at"):
        world.at += 1.0
    await world.store.enter_room("room", player("p2"))
    assert (await world.store.room_versions(["room"]))["room"] > version


async def test_versions_of_many_rooms_come_in_one_answer(world: World) -> None:
    rooms = [f"room-{i}" for i in range(450)]
    for room in rooms[::100]:
        await world.store.place_room(room, wish("a"))
    versions = await world.store.room_versions(rooms)
    assert list(versions) == rooms
    assert [room for room, version in versions.items() if version] == rooms[::100]
    assert await world.store.room_versions([]) == {}


async def test_an_unknown_room_is_empty(world: World) -> None:
    assert await world.store.read_room("room") == RoomRecord()


async def test_names_from_the_network_are_only_names(world: World) -> None:
    room, odd = "room:leases {x} \n '", 'p:1 }{ " \\ \n é 名'
    entered = await world.store.enter_room(room, player(odd, odd))
    assert await world.store.put_player(room, player(odd, odd, epoch=entered.epoch, name=odd))
    assert await world.store.put_publication(room, publication(odd, odd, 1, odd))
    assert (await world.store.place_room(room, wish(odd))).placement.sfu == odd
    assert await world.store.renew_room(room, [odd]) == ()
    read = await world.store.read_room(room)
    assert read.players[odd].name == odd
    assert read.publications[odd].sfu == odd
    assert (await world.store.enter_room(room, player("p2", odd))).replaced == (odd,)
    assert (await world.store.read_room(room)).publications == {}


async def test_a_bad_player_or_publication_is_left_out_and_counted(world: World) -> None:
    await world.store.enter_room("room", player("p1"))
    await world.write_raw_field("room", "p:bad", b"{]")
    await world.write_raw_field("room", "b:bad", b"17")
    room = await world.store.read_room("room")
    assert set(room.players) == {"p1"}
    assert room.publications == {}
    assert world.store.counts["bad-record"] == 2


async def test_unknown_fields_of_players_and_publications_survive(world: World) -> None:
    extra = {"later": [], "deep": {"empty": {}}}
    entered = await world.store.enter_room("room", player("p1", extra=extra))
    track = msgspec.structs.replace(publication("track", "p1"), extra=extra)
    await world.store.put_publication("room", track)
    room = await world.store.read_room("room")
    assert room.players["p1"] == player("p1", epoch=entered.epoch, extra=extra)
    assert room.publications["track"] == track


# --- operators ---


async def test_an_exit_order_is_dated_by_the_store_and_the_newest_of_its_scope_stands(world: World) -> None:
    before = await world.store.now()
    first = await world.store.order_exit(ExitScope.SFU, "sfu-1", "ann")
    second = await world.other.order_exit(ExitScope.SFU, "sfu-1", "bob")
    other = await world.store.order_exit(ExitScope.ALL_CORDONED, "", "ann")
    assert before <= first.at <= second.at <= other.at <= await world.store.now()
    read = await world.store.read_exits()
    assert sorted(read, key=lambda order: order.scope) == [other, second]
    assert (second.scope, second.target, second.by) == ("sfu", "sfu-1", "bob")


async def test_the_newest_command_for_an_sfu_stands(world: World) -> None:
    cordon = await world.store.command_sfu(CommandVerb.CORDON, "sfu-1", "ann", "deploy")
    uncordon = await world.store.command_sfu(CommandVerb.UNCORDON, "sfu-1", "ann", "")
    await world.store.command_sfu(CommandVerb.DRAIN, "sfu-2", "bob", "")
    assert cordon.command != uncordon.command
    assert cordon.at <= uncordon.at
    assert (cordon.verb, cordon.reason) == ("cordon", "deploy")
    assert await world.other.read_commands(["sfu-1", "sfu-3"]) == [uncordon]
    assert await world.store.read_commands([]) == []


async def test_drain_reports_come_newest_first_and_once(world: World) -> None:
    reports = [DrainReport(sfu=f"sfu-{i}", to_exit_s=float(i), conversations_s=(1.5, 2.0)) for i in range(3)]
    for report in reports:
        await world.store.push_drain_report(report)
        await world.other.push_drain_report(report)
    assert await world.store.read_drain_reports(10) == reports[::-1]
    assert await world.store.read_drain_reports(1) == reports[:1:-1]
    assert await world.store.read_drain_reports(0) == []


# --- routers ---


async def test_routers_are_listed_until_they_leave(world: World) -> None:
    one, two = RouterRecord(router="r1", sfus=("sfu-1",)), RouterRecord(router="r2", players=4, extra={"later": []})
    await world.store.put_router(one)
    await world.other.put_router(two)
    assert await world.store.read_routers() == [one, two]
    await world.store.remove_router("r1")
    assert await world.store.read_routers() == [two]


async def test_a_router_is_as_old_as_its_last_record(world: World) -> None:
    await world.store.put_router(RouterRecord(router="r1"))
    (fresh,) = await world.other.hear_routers()
    assert fresh.silent_for_s < 5.0
    await world.age_router("r1", 6.0)
    (old,) = await world.other.hear_routers()
    assert 6.0 <= old.silent_for_s < 11.0
    assert old.router == RouterRecord(router="r1")
    await world.store.put_router(RouterRecord(router="r1"))
    assert (await world.other.hear_routers())[0].silent_for_s < 5.0


async def test_histories_are_known_since_the_first_router_wrote(world: World) -> None:
    assert await world.store.known_since() is None
    before = await world.store.now()
    await world.store.put_router(RouterRecord(router="r1"))
    since = await world.other.known_since()
    assert since is not None
    assert before <= since <= await world.store.now()
    await world.other.put_router(RouterRecord(router="r2"))
    await world.store.remove_router("r1")
    assert await world.other.known_since() == since


async def test_a_redis_that_has_lost_everything_knows_nothing_of_before(world: World) -> None:
    await world.store.put_router(RouterRecord(router="r1"))
    await world.lose_everything()
    assert await world.store.known_since() is None
    lost_at = await world.store.now()
    await world.store.put_router(RouterRecord(router="r1"))
    since = await world.store.known_since()
    assert since is not None
    assert since >= lost_at


# --- hints ---


async def test_hints_reach_every_program_after_a_first_gap(world: World) -> None:
    hints = [
        Wake(WakeKind.SFU, "sfu-1"),
        Wake(WakeKind.ROOM, "a room"),
        Wake(WakeKind.EXIT),
        Wake(WakeKind.COMMAND, "s"),
    ]
    async with (
        asyncio.timeout(DEADLINE_S),
        aclosing(world.store.wakes(rng=random.Random(1))) as mine,
        aclosing(world.other.wakes(rng=random.Random(1))) as theirs,
    ):
        for heard in (mine, theirs):
            assert await anext(heard) == Gap()
        for hint in hints:
            await world.store.wake(hint)
        for heard in (mine, theirs):
            assert [await anext(heard) for _ in hints] == hints


async def test_a_store_is_healthy_once_it_has_answered(world: World) -> None:
    assert not world.store.healthy
    await world.store.ping()
    assert world.store.healthy
