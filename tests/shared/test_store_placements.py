"""What is in flight, who fails, and the history of placements: the same on every backend (P4, P5)."""

from __future__ import annotations

import asyncio
import re
import secrets
from collections import Counter
from collections.abc import AsyncIterator

import pytest

from shared.keys import PLACEMENTS_KEPT
from shared.placement_records import PlacementRecord
from shared.placing import OTHER, TOO_FAST, Counts, FailureRule, InFlightThere, Offer, TooFast, Tries, Wish
from shared.records import PlayerRecord, RoomPlacement
from tests.shared.worlds import MemoryWorld, RedisWorld, World


def offers(*sfus: str, revision: int = 1, cost: float = 0.01, **figures: float) -> tuple[Offer, ...]:
    return tuple(Offer(sfu=sfu, version=(1, revision), figure=figures.get(sfu, 0.0), cost=cost) for sfu in sfus)


def wish(*sfus: str, **fields: object) -> Wish:
    return Wish(offers=offers(*sfus), **fields)  # type: ignore[arg-type]


@pytest.fixture
async def redis_world(redis_url: str, fleet: str) -> AsyncIterator[RedisWorld]:
    """A real server, for what only its scripts can read wrong."""
    made = RedisWorld(redis_url, fleet)
    yield made
    await made.close()


def clock_of(world: World) -> MemoryWorld | None:
    return world if isinstance(world, MemoryWorld) else None


async def test_a_room_named_like_the_leases_of_another_does_it_no_harm(world: World) -> None:
    assert (await world.store.place_room("x:leases", wish("a"))).placement.sfu == "a"
    await world.store.enter_room("x:leases", PlayerRecord(player="p1", identity="eve"))
    await world.store.enter_room("x", PlayerRecord(player="p2", identity="ann"))
    assert (await world.store.place_room("x", wish("b"))).placement.sfu == "b"
    assert list((await world.other.read_room("x")).players) == ["p2"]


# --- in flight ---


async def test_new_rooms_of_two_routers_spread_over_equal_sfus(world: World) -> None:
    stores = (world.store, world.other)
    calls = (stores[i % 2].place_room(f"room-{i}", wish("a", "b", "c")) for i in range(30))
    placed = await asyncio.gather(*calls)
    assert Counter(each.placement.sfu for each in placed) == {"a": 10, "b": 10, "c": 10}


async def test_joins_of_a_standing_room_count_on_its_sfu(world: World) -> None:
    for _ in range(3):
        await world.store.place_room("big", wish("a", "b"))
    assert (await world.other.place_room("next", wish("a", "b"))).placement.sfu == "b"
    told = await world.other.place_room("more", wish("a", "b"))
    assert told.in_flight["a"].counts == {(1, 1): Counts(3, 1)}
    assert told.in_flight["b"].counts == {(1, 1): Counts(1, 1)}


async def test_a_placement_that_is_no_join_here_counts_no_join(world: World) -> None:
    await world.store.place_room("room", wish("a"))
    await world.store.place_room("room", wish("b", keep=offers("a")[0], join=False))
    told = (await world.store.place_room("other", wish("a", "b"))).in_flight
    assert told["a"].counts == {(1, 1): Counts(1, 1)}


async def test_a_report_that_shows_the_joins_makes_them_count_no_longer(world: World) -> None:
    for i in range(5):
        await world.store.place_room(f"room-{i}", Wish(offers=offers("a", revision=7)))
    for revision, best in ((7, "b"), (8, "b"), (9, "a")):
        made = Wish(offers=(*offers("a", revision=revision), *offers("b", b=0.02)), join=False)
        assert (await world.store.place_room(f"at-{revision}", made)).placement.sfu == best


async def test_a_router_that_lags_behind_still_counts_what_its_report_does_not_show(world: World) -> None:
    for i in range(5):
        await world.store.place_room(f"room-{i}", Wish(offers=offers("a", revision=7)))
    await world.store.place_room("later", Wish(offers=offers("a", revision=10)))
    lagging = Wish(offers=(*offers("a", revision=8), *offers("b", b=0.02)))
    assert (await world.other.place_room("lagging", lagging)).placement.sfu == "b"


async def test_a_restarted_sfu_has_nothing_in_flight(world: World) -> None:
    for i in range(5):
        await world.store.place_room(f"room-{i}", Wish(offers=offers("a", revision=7)))
    restarted = (Offer(sfu="a", version=(2, 0), cost=0.01), *offers("b", b=0.02))
    assert (await world.store.place_room("restarted", Wish(offers=restarted))).placement.sfu == "a"


async def test_the_ladder_comes_before_the_figures(world: World) -> None:
    better, worse = Offer(sfu="a", rank=OTHER << 1), Offer(sfu="b", figure=5.0)
    assert (await world.store.place_room("room", Wish(offers=(better, worse)))).placement.sfu == "b"


async def test_new_rooms_are_what_adds_where_rooms_are_sorted_by(world: World) -> None:
    for _ in range(5):
        await world.store.place_room("big", wish("a", per_room=True))
    made = Wish(offers=(*offers("a", cost=1.0), *offers("b", cost=1.0, b=1.5)), per_room=True)
    assert (await world.store.place_room("new", made)).placement.sfu == "a"
    assert (await world.store.place_room("newer", made)).placement.sfu == "b"


async def test_over_the_cap_on_joins_an_sfu_is_passed_over_while_there_is_another(world: World) -> None:
    def capped(*sfus: str) -> Wish:
        return Wish(offers=tuple(Offer(sfu=sfu) for sfu in sfus), max_joins_per_s=4)

    if clock := clock_of(world):
        clock.at += 0.0
    placed = [(await world.store.place_room(f"room-{i}", capped("a", "b"))) for i in range(6)]
    assert Counter(each.placement.sfu for each in placed)["a"] in (4, 5), "one second may just have ended"
    assert (await world.other.place_room("only", capped("a"))).placement.sfu == "a", "placing never fails"
    assert placed[-1].in_flight["a"].joins_per_s > 2


async def test_an_sfu_over_the_cap_goes_before_one_that_a_higher_rule_of_the_ladder_puts_last(world: World) -> None:
    """Players are sent there too fast, but they can connect."""
    for _ in range(20):  # on a busy machine the second may have ended
        await world.store.place_room("a-only", Wish(offers=(Offer(sfu="a"),)))
        failing, cold = Offer(sfu="b", rank=OTHER | TOO_FAST << 3), Offer(sfu="c", rank=OTHER | TOO_FAST >> 1)
        capped = [Wish(offers=(Offer(sfu="a"), other), max_joins_per_s=1e-9) for other in (failing, cold)]
        placed = [await world.store.place_room(secrets.token_hex(4), each) for each in capped]
        if all(each.in_flight["a"].joins_per_s > 0 for each in placed):
            assert [each.placement.sfu for each in placed] == ["a", "c"]
            return
    raise AssertionError("no three placements within one second")


async def test_when_all_that_is_offered_is_over_the_cap_and_there_is_more_nothing_is_placed(world: World) -> None:
    def capped(*sfus: str, more: bool = True) -> Wish:
        return Wish(offers=tuple(Offer(sfu=sfu) for sfu in sfus), max_joins_per_s=1e-9, more=more)

    async def refusal(room: str) -> TooFast | None:
        for sfu in "ab":
            await world.store.place_room(f"{room}-{sfu}", capped(sfu, more=False))
        try:
            await world.other.place_room(room, capped("a", "b"))
        except TooFast as error:
            return error
        return None

    refused = None
    for n in range(20):  # on a busy machine the second may have ended
        if (refused := await refusal(room := f"room-{n}")) is not None:
            break
    assert refused is not None
    assert set(refused.in_flight) == {"a", "b"}
    assert all(there.joins_per_s > 0 and there.counts for there in refused.in_flight.values())
    assert (await world.store.read_room(room)).placement is None
    assert (await world.store.place_room(room, capped("a", "b", "c"))).placement.sfu == "c"
    assert (await world.store.place_room(room, capped("a", "b"))).placement.sfu == "c", "a room stays"
    assert (await world.store.place_room("last", capped("a", more=False))).placement.sfu == "a"


@pytest.mark.parametrize("raw", ["", "x", "1 2", ";1 1 1 1 1", "9" * 400, "é", "1 1 1 1;nonsense;1 1 -4 0 0"])
async def test_a_record_in_flight_that_cannot_be_read_is_empty(world: World, raw: str) -> None:
    await world.write_raw_in_flight("a", raw.encode())
    told = await world.store.place_room("room", wish("a", "b"))
    assert told.placement.sfu == "a"
    assert told.in_flight["a"].counts == {}
    assert (await world.store.place_room("room", wish("a"))).in_flight["a"].counts == {(1, 1): Counts(1, 1)}


async def test_what_is_stored_is_what_routers_of_the_last_release_write_and_read(redis_world: RedisWorld) -> None:
    """During a rollout of routers old and new ones share one Redis (D9): these bytes are theirs."""
    now = int(await redis_world.server_now())
    since = now * 1000
    await redis_world.write_raw_in_flight("a", f"{now} 3 2;1 6 1 1 {since};1 7 5 2 {since}".encode())
    await redis_world.write_raw_field("old", "place", b'{"sfu":"a","generation":7}')
    lagging = Wish(offers=(Offer(sfu="a", version=(1, 7), cost=0.01), Offer(sfu="b", figure=0.05)))
    told = await redis_world.store.place_room("old", lagging)
    assert told.placement == RoomPlacement(sfu="a", generation=7)
    assert told.in_flight["a"].counts == {(1, 6): Counts(1, 1), (1, 7): Counts(5, 2)}
    assert (await redis_world.store.place_room("new", lagging)).placement.sfu == "b", "seven in flight were counted"
    refused = Wish(offers=lagging.offers[1:], refuse=("a",))
    assert (await redis_world.store.place_room("old", refused)).placement.generation == 8
    raw = await redis_world.read_raw("old", "place"), await redis_world.read_raw("new", "place")
    assert raw == (b'{"sfu":"b","generation":8}', b'{"sfu":"b","generation":1}')
    kept = re.sub(rb"\b\d{10}\b", b"S", re.sub(rb"\b\d{13}\b", b"MS", await redis_world.read_raw_in_flight("a")))
    assert re.fullmatch(rb"S \d \d;1 6 1 1 MS;1 7 6 2 MS", kept), kept
    kept = re.sub(rb"\b\d{10}\b", b"S", re.sub(rb"\b\d{13}\b", b"MS", await redis_world.read_raw_in_flight("b")))
    assert re.fullmatch(rb"S \d \d;0 0 2 2 MS", kept), kept


@pytest.mark.parametrize(
    "head", ["{now} 1 " + "9" * 400, "{now} " + "9" * 400 + " 0", "{now} 1 " + "9" * 19, "9" * 400 + " 1 0"]
)
async def test_a_pace_that_cannot_be_is_unknown(redis_world: RedisWorld, head: str) -> None:
    now = int(await redis_world.server_now())
    for at in (now, now + 1):  # whichever second the script runs in
        await redis_world.write_raw_in_flight("a", (head.format(now=at) + f";1 1 5 5 {now * 1000}").encode())
        told = await redis_world.store.place_room(f"room-{at}", wish("a", "b", max_joins_per_s=1))
        assert told.in_flight["a"] == InFlightThere()
        await redis_world.write_raw_in_flight("b", head.format(now=at).encode())
        assert (await redis_world.store.count_join("b", (1, 1))).counts == {(1, 1): Counts(1, 0)}


@pytest.mark.parametrize("part", ["1 1 {huge} 5 {now}", "1 1 5 {huge} {now}", "{huge} 1 5 5 {now}", "1 1 5 5 {huge}"])
async def test_counts_that_no_router_can_read_decide_nothing(redis_world: RedisWorld, part: str) -> None:
    """Else the script would choose by figures of which no decision tells."""
    now = int(await redis_world.server_now())
    for huge in ("9" * 25, "9" * 400):
        raw = f"{now} 1 0;" + part.format(huge=huge, now=now * 1000)
        await redis_world.write_raw_in_flight("a", raw.encode())
        told = await redis_world.store.place_room(f"room-{len(huge)}", wish("a", "b"))
        assert told.placement.sfu == "a"
        assert told.in_flight["a"].counts == {}
        assert (await redis_world.store.count_join("a", (1, 1))).counts == {(1, 1): Counts(2, 1)}


@pytest.mark.parametrize("written", ["1e3", "3.0", "3E0", " 4.0"])
async def test_a_placement_whose_generation_no_router_can_read_is_made_again(
    redis_world: RedisWorld, written: str
) -> None:
    await redis_world.write_raw_field("room", "place", b'{"sfu":"z","generation":' + written.encode() + b"}")
    assert (await redis_world.store.place_room("room", wish("a"))).placement.sfu == "a"
    assert (await redis_world.other.place_room("room", wish("b"))).placement.sfu == "a"


# --- failing connections ---


def tries(sfu: str, tried: range, failed: range, incarnation: int = 1) -> Tries:
    return Tries(sfu=sfu, incarnation=incarnation, tried=tuple(map(str, tried)), failed=tuple(map(str, failed)))


RULE = FailureRule(share=0.1, players=30, window_s=120.0, pause_s=60.0)


async def test_an_sfu_that_fails_for_more_than_a_tenth_of_thirty_players_is_left_out(world: World) -> None:
    assert await world.store.note_tries([tries("a", range(20), range(3))], RULE) == []
    assert (
        await world.other.note_tries([tries("a", range(20, 30), range(0)), tries("b", range(40), range(4))], RULE) == []
    )
    assert await world.other.note_tries([tries("a", range(0), range(3, 4))], RULE) == ["a"]
    (failing,) = await world.store.read_failing()
    assert (failing.sfu, failing.incarnation) == ("a", 1)
    assert 30 < failing.left_s <= 60


async def test_one_player_that_fails_often_counts_once(world: World) -> None:
    for _ in range(5):
        assert await world.store.note_tries([tries("a", range(40), range(1))], RULE) == []


async def test_few_players_say_nothing(world: World) -> None:
    assert await world.store.note_tries([tries("a", range(29), range(29))], RULE) == []
    assert await world.store.read_failing() == []


async def test_each_run_of_an_sfu_is_judged_alone(world: World) -> None:
    assert await world.store.note_tries([tries("a", range(20), range(10))], RULE) == []
    assert await world.store.note_tries([tries("a", range(20, 40), range(0), incarnation=2)], RULE) == []


async def test_after_its_pause_an_sfu_begins_again(world: World) -> None:
    short = FailureRule(share=0.1, players=2, window_s=120.0, pause_s=0.05)
    assert await world.store.note_tries([tries("a", range(2), range(2))], short) == ["a"]
    if clock := clock_of(world):
        clock.at += 0.1
    async with asyncio.timeout(20):
        while await world.store.read_failing():  # noqa: ASYNC110 - the server's clock
            await asyncio.sleep(0.01)
    assert await world.store.note_tries([tries("a", range(5, 6), range(5, 6))], short) == []


@pytest.mark.parametrize("raw", ["1 " + "9" * 400, "1 " + "9" * 30, "1 9999999999999", "9" * 30 + " 1", "x", ""])
async def test_an_sfu_is_left_out_for_no_longer_than_any_pause(redis_world: RedisWorld, raw: str) -> None:
    await redis_world.write_raw_failing("a", raw)
    assert await redis_world.store.read_failing() == []
    assert await redis_world.store.note_tries([tries("a", range(40), range(40))], RULE) == ["a"]
    assert [each.sfu for each in await redis_world.store.read_failing()] == ["a"]


# --- the history ---


def record(number: int, **fields: str) -> PlacementRecord:
    return PlacementRecord(id=f"r1-{number}", sfu="a", **fields)  # type: ignore[arg-type]


async def test_the_history_is_newest_first_and_bounded(world: World) -> None:
    for start in range(0, PLACEMENTS_KEPT + 100, 300):
        await world.store.push_placements([record(i) for i in range(start, start + 300)])
    ids = [each.id for each in await world.other.read_placements(3000)]
    assert ids == [f"r1-{i}" for i in range(2099, 99, -1)]
    assert [each.id for each in await world.other.read_placements(2)] == ["r1-2099", "r1-2098"]
    assert await world.other.read_placements(0) == []


async def test_the_history_of_a_room_or_a_player_is_read_and_a_record_pushed_twice_is_one(world: World) -> None:
    made = [
        record(1, room="kitchen", identity="ann", player="p1"),
        record(2, room="kitchen", identity='b"ö', player="p2"),
        record(3, room="ann", identity="cem", player="p3"),
    ]
    await world.store.push_placements(made)
    await world.store.push_placements(made[:1])

    async def ids(**wanted: str) -> list[str]:
        return sorted(each.id for each in await world.other.read_placements(10, **wanted))

    assert await ids(room="kitchen") == ["r1-1", "r1-2"]
    assert await ids(player="ann") == ["r1-1"]
    assert await ids(player='b"ö') == await ids(player="p2") == ["r1-2"]
    assert await ids(room="kitchen", player="cem") == []
    assert await ids() == ["r1-1", "r1-2", "r1-3"]
