"""How long what is kept about placements counts, and where exactly its bounds are: the same on every backend (P4)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from shared.placing import IN_FLIGHT_LIFE_S, Counts, FailureRule, Offer, Tries, Wish
from tests.shared.worlds import RedisWorld, World, wish

RULE = FailureRule(share=0.1, players=3, window_s=120.0, pause_s=60.0)


def tries(*tried: str, failed: tuple[str, ...] = ()) -> Tries:
    return Tries(sfu="a", incarnation=1, tried=tried, failed=failed)


@pytest.fixture
async def server(redis_url: str, fleet: str) -> AsyncIterator[RedisWorld]:
    """A real one: what Redis itself lets go of, the twin in memory keeps."""
    made = RedisWorld(redis_url, fleet)
    yield made
    await made.close()


async def in_flight(world: World, sfu: str) -> Counts:
    """What a router is told, without a join being counted."""
    told = await world.store.place_room(f"look-{sfu}", Wish(offers=(Offer(sfu=sfu),), join=False))
    return told.in_flight[sfu].counts.get((0, 0), Counts())


# --- in flight ---


async def test_a_placement_that_no_report_shows_counts_for_twenty_seconds(world: World) -> None:
    offers = (Offer(sfu="a", cost=1.0), Offer(sfu="b", figure=0.5))
    await world.store.place_room("first", Wish(offers=offers))
    await world.age_in_flight("a", IN_FLIGHT_LIFE_S - 5.0)
    assert (await world.store.place_room("second", Wish(offers=offers))).placement.sfu == "b"
    await world.age_in_flight("a", 5.0)
    assert (await world.store.place_room("third", Wish(offers=offers))).placement.sfu == "a"


async def test_placements_of_one_version_end_with_the_first_of_them(world: World) -> None:
    for room in ("first", "second"):
        await world.store.place_room(room, wish("a"))
        assert await in_flight(world, "a") != Counts()
        await world.age_in_flight("a", IN_FLIGHT_LIFE_S / 2)
    offers = (Offer(sfu="a", cost=1.0), Offer(sfu="b", figure=0.5))
    assert (await world.store.place_room("third", Wish(offers=offers))).placement.sfu == "a"


async def test_what_comes_after_those_that_are_over_is_counted_from_zero(world: World) -> None:
    for room in ("first", "second"):
        await world.store.place_room(room, wish("a"))
    await world.age_in_flight("a", IN_FLIGHT_LIFE_S)
    await world.store.place_room("third", wish("a"))
    assert await in_flight(world, "a") == Counts(1, 1)


async def test_a_version_that_is_over_is_forgotten_when_another_is_counted(world: World) -> None:
    await world.store.place_room("first", Wish(offers=(Offer(sfu="a", version=(1, 5)),)))
    await world.age_in_flight("a", IN_FLIGHT_LIFE_S)
    for room in ("second", "third"):
        told = await world.store.place_room(room, Wish(offers=(Offer(sfu="a", version=(1, 6)),)))
    assert set(told.in_flight["a"].counts) == {(1, 6)}


async def test_an_sfu_that_no_player_is_sent_to_any_more_leaves_nothing_in_flight(server: RedisWorld) -> None:
    await server.store.place_room("room", wish("a"))
    left_ms = await server.client.pttl(server.keys.in_flight("a"))
    assert 0 < left_ms <= IN_FLIGHT_LIFE_S * 1000


async def test_the_cap_itself_is_reached_and_not_passed(world: World) -> None:
    """As many joins in one second as the cap allows; another would be one too many."""
    for attempt in range(50):
        a, b = f"a{attempt}", f"b{attempt}"
        capped = Wish(offers=(Offer(sfu=a), Offer(sfu=b)), max_joins_per_s=3)
        placed = [(await world.store.place_room(f"{attempt}-{i}", capped)) for i in range(4)]
        if placed[-1].in_flight[a].joins_per_s == 3.0:
            assert [each.placement.sfu for each in placed] == [a, a, a, b]
            return
    raise AssertionError("no four placements within one second")


# --- failing connections ---


async def test_who_was_sent_there_counts_for_two_minutes(world: World) -> None:
    assert await world.store.note_tries([tries("1", "2", failed=("1",))], RULE) == []
    await world.age_tries("a", 100.0)
    assert await world.store.note_tries([tries("3")], RULE) == ["a"]


async def test_who_was_sent_there_earlier_counts_no_longer(world: World) -> None:
    assert await world.store.note_tries([tries("1", "2", failed=("2",))], RULE) == []
    await world.age_tries("a", 120.0)
    assert await world.store.note_tries([tries("3", "4")], RULE) == [], "two players say nothing"
    assert await world.store.note_tries([tries("5")], RULE) == [], "and of three it failed for none"


async def test_who_is_sent_there_again_counts_from_then_on(world: World) -> None:
    assert await world.store.note_tries([tries("1", "2")], RULE) == []
    await world.age_tries("a", 100.0)
    assert await world.store.note_tries([tries("1", "2")], RULE) == []
    await world.age_tries("a", 100.0)
    assert await world.store.note_tries([tries("3", failed=("3",))], RULE) == ["a"]


async def test_a_failure_does_not_make_its_try_a_later_one(world: World) -> None:
    """One of three that were sent there is no more than that because it failed late."""
    assert await world.store.note_tries([tries("1", "2")], RULE) == []
    await world.age_tries("a", 100.0)
    assert await world.store.note_tries([tries(failed=("1",))], RULE) == []
    await world.age_tries("a", 30.0)
    assert await world.store.note_tries([tries("3", "4")], RULE) == [], "the first two are too long ago"


async def test_a_failure_without_a_try_is_one(world: World) -> None:
    """The router that sent the player there has died, say."""
    assert await world.store.note_tries([tries(failed=("1", "2", "3"))], RULE) == ["a"]


async def test_connections_that_no_player_tries_any_more_leave_nothing(server: RedisWorld) -> None:
    await server.store.note_tries([tries("1", failed=("2",))], RULE)
    for key in (server.keys.tried("a", 1), server.keys.failed("a", 1)):
        assert 0 < await server.client.pttl(key) <= RULE.window_s * 1000
