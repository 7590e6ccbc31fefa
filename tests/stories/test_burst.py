"""A burst of 500 joins between two reports spreads as if reports were instant, within 10 % (P4)."""

from __future__ import annotations

import random
import secrets
from collections import Counter
from collections.abc import AsyncIterator

import pytest

from router.core.selector.node_selector import SortBy
from router.core.selector.sorts import Costs
from router.shell.session_starter import AT_ONCE
from shared.placing import Offer, Wish
from shared.store.api import StoreApi
from shared.store.store import Store
from tests.fakes.burst import Burst, Node, furthest
from tests.fakes.store import FakeStore
from tests.fakes.store_core import StoreCore

WITHIN = 0.10
EQUAL = [Node(sfu=f"s{n}") for n in range(5)]
UNEQUAL = [Node(sfu=f"s{n}", clients=clients) for n, clients in enumerate((150, 90, 30, 12, 0))]
MIXED = [
    Node(sfu="big", clients=200, cost=0.001),
    Node(sfu="small", clients=60, cost=0.004),
    Node(sfu="new", cost=0.002),
    Node(sfu="newer", cost=0.002),
]
ALONE = [f"room-{n}" for n in range(500)]


def crowds() -> list[str]:
    """A hundred rooms of five, whose players come mixed."""
    rooms = [f"room-{n}" for n in range(100)] * 5
    random.Random(5).shuffle(rooms)
    return rooms


@pytest.fixture
async def two(redis_url: str, fleet: str) -> AsyncIterator[list[StoreApi]]:
    """Two routers' ways to one real server."""
    stores: list[StoreApi] = [Store(redis_url, fleet=fleet, timeout_s=20.0) for _ in range(2)]
    yield stores
    for store in stores:
        await store.close()


@pytest.mark.parametrize("nodes", [EQUAL, UNEQUAL], ids=["equal", "unequal"])
async def test_500_joins_between_two_reports_spread_as_if_reports_were_instant(
    two: list[StoreApi], nodes: list[Node]
) -> None:
    burst = Burst(two, nodes)
    before, ideal = Counter(burst.clients), burst.ideal(ALONE)
    got = await burst.joins(ALONE)
    assert furthest(got, ideal, before=before) <= WITHIN, (got, ideal)


@pytest.mark.parametrize("nodes", [EQUAL, UNEQUAL], ids=["equal", "unequal"])
async def test_500_joins_into_sticky_rooms_fill_sfus_as_if_reports_were_instant(
    two: list[StoreApi], nodes: list[Node]
) -> None:
    """Which of two equal SFUs gets a room is chance, and so is who comes first, while a room's first player brings four
    more along: how full the fullest and the emptiest can get with instant reports is what counts."""
    burst = Burst(two, nodes)
    rooms = crowds()
    ideals = [burst.clients + burst.ideal(rooms, rng=random.Random(seed)) for seed in range(100)]
    most, least = max(max(each.values()) for each in ideals), min(min(each.values()) for each in ideals)
    await burst.joins(rooms)
    full = burst.clients.values()
    assert max(full) <= (1 + WITHIN) * most, (full, most)
    assert min(full) >= (1 - WITHIN) * least, (full, least)


async def test_sfus_of_different_size_get_what_they_can_carry(two: list[StoreApi]) -> None:
    """An SFU without clients is taken for a typical one, so the bound is for the two that have shown their cost."""
    burst = Burst(two, MIXED)
    ideal = burst.ideal(ALONE)
    before = Counter(burst.clients)
    got = await burst.joins(ALONE)
    known = {sfu: (before[sfu] + got[sfu]) / (before[sfu] + ideal[sfu]) for sfu in ("big", "small")}
    assert all(0.8 <= share <= 1.2 for share in known.values()), (got, ideal)
    assert abs(got["new"] - got["newer"]) <= 2


async def test_players_who_cannot_use_the_sfu_of_their_room_spread_over_the_others(two: list[StoreApi]) -> None:
    """A blocked port range, say: 500 players at once, of rooms that stay where they are."""
    burst = Burst(two, [*EQUAL, Node(sfu="home", clients=1)])
    rooms = [f"room-{n}" for n in range(500)]
    for room in rooms:
        await two[0].place_room(room, Wish(offers=(Offer(sfu="home", version=(1, 2)),), join=False))
    got = await burst.joins(rooms, exclude=["home"])
    assert furthest(got, even(500), before=Counter()) <= WITHIN, got
    stand = [(await two[1].read_room(room)).placement for room in rooms]
    assert {place.sfu for place in stand if place} == {"home"}


async def test_a_cap_on_joins_a_second_holds_for_players_who_cannot_use_the_sfu_of_their_room() -> None:
    stores = in_memory(2)
    nodes = [Node(sfu="empty"), Node(sfu="busy", clients=300), Node(sfu="home", clients=1)]
    burst = Burst(stores, nodes, max_joins_per_s=20)
    await stores[0].place_room("one", Wish(offers=(Offer(sfu="home", version=(1, 2)),), join=False))
    got = await burst.joins(["one"] * 80, exclude=["home"])
    assert got["empty"] <= 20 + 2 * AT_ONCE, "each router decides alone for those that it has in hand"
    assert got["busy"] == 80 - got["empty"]


async def test_a_report_in_the_middle_of_the_burst_does_not_upset_it(two: list[StoreApi]) -> None:
    burst = Burst(two, UNEQUAL)
    before, ideal = Counter(burst.clients), burst.ideal(ALONE)
    got: Counter[str] = Counter()
    for start in range(0, 500, 125):
        got += await burst.joins(ALONE[start : start + 125])
        burst.report()
    assert furthest(got, ideal, before=before) <= 2 * WITHIN, (got, ideal)


@pytest.mark.parametrize("sort_by", ["cpuload", "sysload", "clients", "rooms", "tracks", "bytespersec", "random"])
async def test_every_sort_spreads_a_burst_over_equal_sfus(sort_by: str) -> None:
    burst = Burst(in_memory(2), EQUAL, sort_by=SortBy(sort_by))
    got = await burst.joins(ALONE[:200])
    bound = 0.6 if sort_by == "random" else WITHIN
    assert furthest(got, even(200), before=Counter()) <= bound, got


async def test_two_choices_spread_a_burst_too() -> None:
    burst = Burst(in_memory(2), EQUAL, two_choices=True)
    got = await burst.joins(ALONE[:200])
    assert furthest(got, even(200), before=Counter()) <= WITHIN, got


async def test_while_redis_is_away_each_router_spreads_what_it_places_itself() -> None:
    stores = in_memory(2)
    for store in stores:
        store.down = True
    burst = Burst(stores, EQUAL)
    for state, _ in burst.placing:
        state.directory.lose_store(now=burst.now)
    got = await burst.joins(ALONE[:200])
    assert furthest(got, even(200), before=Counter()) <= WITHIN, got


async def test_a_cap_on_joins_a_second_is_kept_by_all_routers_together_while_another_sfu_is_under_it() -> None:
    burst = Burst(in_memory(2), UNEQUAL, max_joins_per_s=20)
    got = await burst.joins(ALONE[:90])
    assert max(got.values()) <= 22, "both routers may choose in the same moment"
    assert sum((await burst.joins(ALONE[90:150])).values()) == 60, "over the cap everywhere, and no player is refused"


@pytest.mark.parametrize(("routers", "cap"), [(1, 1), (2, 1), (8, 2), (8, 5)])
async def test_a_low_cap_is_kept_by_many_routers_in_the_same_moment(routers: int, cap: int) -> None:
    """Each router offers its best few, and all have the same best: those that are over the cap are left for others."""
    burst = Burst(in_memory(routers), [Node(sfu=f"s{n:02}", clients=n) for n in range(40)], max_joins_per_s=cap)
    got = await burst.joins(ALONE[: 30 * cap])
    assert max(got.values()) <= cap, got
    assert sum((await burst.joins([f"more-{n}" for n in range(20 * cap)])).values()) == 20 * cap, "no player is refused"


async def test_what_would_happen_if_placements_in_flight_counted_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same burst with a cost that is as good as none: shows that these tests can fail."""
    monkeypatch.setattr(Costs, "of", lambda *_: 1e-12)
    burst = Burst(in_memory(2), UNEQUAL)
    before, ideal = Counter(burst.clients), burst.ideal(ALONE[:200])
    got = await burst.joins(ALONE[:200])
    assert got == Counter({"s4": 200})
    assert furthest(got, ideal, before=before) > 1


async def test_a_crowded_room_keeps_its_sfu_and_new_rooms_go_elsewhere(two: list[StoreApi]) -> None:
    burst = Burst(two, EQUAL)
    assert len(await burst.joins(["one"] * 200)) == 1
    home = burst.rooms["one"]
    others = await burst.joins([f"more-{secrets.token_hex(2)}-{n}" for n in range(100)])
    assert others[home] == 0


def even(joins: int) -> Counter[str]:
    return Counter({node.sfu: joins // len(EQUAL) for node in EQUAL})


def in_memory(count: int) -> list[FakeStore]:
    core = StoreCore(lambda: 1_800_000_000.0)
    return [FakeStore(core=core) for _ in range(count)]
