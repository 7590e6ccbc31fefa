"""Placement by two routers as real processes on a real Redis: one SFU a room, each placement explained (P3, P5)."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Any

import aiohttp
import pytest

from cli.explain import told_of
from shared.messages import player
from shared.store.store import Store
from tests.router.actors import Player, RouterProcess, Sfu, player_token

WITHIN_S = 30.0


class Fleet:
    """Two routers, and three SFUs linked to both: two of one release and cell, one of another."""

    def __init__(self, a: RouterProcess, b: RouterProcess, sfus: list[Sfu], store: Store) -> None:
        self.a, self.b, self.sfus, self.store = a, b, sfus, store
        self.tag = secrets.token_hex(3)

    async def get(self, router: RouterProcess, path: str) -> dict[str, Any]:
        async with aiohttp.ClientSession() as session, session.get(f"{router.http}{path}") as response:
            answer: dict[str, Any] = await response.json()
        return answer

    async def explained(self, who: str, count: int) -> list[Any]:
        """What `sluice explain` tells, once it tells that many."""
        deadline = time.monotonic() + WITHIN_S
        while len(records := await self.store.read_placements(500, room=who)) < count:
            assert time.monotonic() < deadline, f"{len(records)} of {count}"
            await asyncio.sleep(0.05)
        return await told_of(self.store, who, last=500)


@pytest.fixture(scope="module")
def routers(redis_url: str) -> Iterator[tuple[RouterProcess, RouterProcess, str]]:
    name = f"test-{secrets.token_hex(6)}"
    settings = {"failure_players": 4, "keep_version": True, "max_joins_per_s": 50}
    started = [RouterProcess(router, redis=redis_url, fleet=name, **settings) for router in "ab"]
    try:
        a, b = (each.wait_up() for each in started)
        yield a, b, name
    finally:
        for each in started:
            each.kill()


@pytest.fixture
async def it(redis_url: str, routers: tuple[RouterProcess, RouterProcess, str]) -> AsyncIterator[Fleet]:
    a, b, name = routers
    kinds = (("s1", 0.1, "v1", "east"), ("s2", 0.1, "v1", "east"), ("s3", 0.2, "v2", "west"))
    sfus = [
        await Sfu(sfu, [a.ws, b.ws], load=load, version=version, cell=cell, warmed_up=True).start()
        for sfu, load, version, cell in kinds
    ]
    store = Store(redis_url, fleet=name, timeout_s=10.0)
    yield Fleet(a, b, sfus, store)
    await asyncio.gather(*(sfu.stop() for sfu in sfus))
    await store.close()


async def test_two_routers_that_place_a_room_at_once_agree_and_say_why(it: Fleet) -> None:
    rooms = [f"race-{it.tag}-{n}" for n in range(12)]
    pairs = [(it.a, "ann"), (it.b, "bob"), (it.a, "cem"), (it.b, "dee")]
    joins = [Player.join(router.ws, room, who) for room in rooms for router, who in pairs]
    people = await asyncio.gather(*joins)
    got = {(p.welcome.room, p.welcome.identity): p.sfu for p in people}
    for room in rooms:
        assert len({sfu for (name, _), sfu in got.items() if name == room}) == 1, room
    for room in rooms:
        records = await it.explained(room, len(pairs))
        assert {each.identity: each.sfu for each in records} == {who: sfu for (r, who), sfu in got.items() if r == room}
        reasons = Counter(each.reason for each in records)
        assert reasons == {"chosen": 1, "sticky": len(pairs) - 1}
        (first,) = (each for each in records if each.reason == "chosen")
        scores = [(each.corrected, each.sfu) for each in first.candidates if not each.passed_over]
        assert first.sfu in [sfu for score, sfu in scores if score == min(scores)[0]], first
    for each in people:
        await each.close()


async def test_the_api_of_each_router_tells_the_fleets_history(it: Fleet) -> None:
    room = f"told-{it.tag}"
    ann = await Player.join(it.a.ws, room, "ann")
    bob = await Player.join(it.b.ws, room, "bob")
    await it.explained(room, 2)
    for router in (it.a, it.b):
        rows = (await it.get(router, f"/api/placements?room={room}"))["placements"]
        told = {(row["identity"], row["sfu"], row["router"]) for row in rows}
        assert told == {("bob", bob.sfu, "b"), ("ann", ann.sfu, "a")}
        (row,) = (await it.get(router, f"/api/placements?player={ann.welcome.player}&last=5"))["placements"]
        assert (row["room"], row["reason"]) == (room, "chosen")
        assert len((await it.get(router, "/api/placements?last=1"))["placements"]) == 1
    await ann.close()
    await bob.close()


async def test_a_preferred_cell_of_the_token_or_the_join_is_honoured_and_a_cordon_is_stronger(it: Fleet) -> None:
    west = await Player.join(it.a.ws, f"west-{it.tag}", "ann", cell="west")
    assert west.sfu == "s3"
    (record,) = await it.explained(f"west-{it.tag}", 1)
    assert record.cell == "west"
    assert {each.sfu: each.passed_over for each in record.candidates} == {
        "s3": "",
        "s1": "other-cell",
        "s2": "other-cell",
    }
    by_token = await Player.open(it.b.ws)
    token = player_token(f"west-{it.tag}-1", "bob", cell="west")
    await by_token.say(player.Join(token=token, cell="east"))
    welcome = await by_token.hears(player.Welcome)
    assert welcome.assignment is not None
    assert welcome.assignment.sfu == "s3", "the app's word counts more than the player's"
    await by_token.close()
    await it.sfus[2].cordon()
    await west.hears(player.CordonedSfu)
    other = await Player.join(it.a.ws, f"west-{it.tag}-2", "ann", cell="west")
    assert other.sfu in ("s1", "s2")
    (record,) = await it.explained(f"west-{it.tag}-2", 1)
    assert [(each.sfu, each.why) for each in record.rejected] == [("s3", "cordoned")]
    await west.close()
    await other.close()


@pytest.mark.parametrize("muted", [False, True], ids=["publishing", "muted"])
async def test_during_a_rollout_a_room_stays_on_its_release(it: Fleet, muted: bool) -> None:
    room = f"rollout-{it.tag}"
    ann = await Player.join(it.a.ws, room, "ann", exclude=("s2", "s3"))
    assert ann.sfu == "s1"
    if not muted:
        await ann.say(player.Publish(publication="mic", kind="audio", sfu="s1"))
        await ann.hears(player.RoomUpdate, where=lambda m: bool(m.publications))
    await it.sfus[1].report(load=0.9)
    await it.sfus[0].cordon()
    heard = await ann.hears(player.CordonedSfu)
    answer = await ann.asks_to_leave(it.sfus[0].state, revision=heard.revision)
    assert isinstance(answer, player.AssignedSfu)
    assert answer.sfu == "s2", "fuller, but of the room's release"
    newest = (await it.explained(room, 2))[0]
    assert (newest.version, newest.reason, newest.room_had) == ("v1", "replaced", "s1")
    assert {each.sfu: each.passed_over for each in newest.candidates} == {"s2": "", "s3": "other-version"}
    await ann.close()


async def test_an_sfu_that_fails_for_many_gets_no_new_players_on_any_router(it: Fleet) -> None:
    people = [await Player.join(it.a.ws, f"fail-{it.tag}-{n}", f"p{n}", exclude=("s2", "s3")) for n in range(6)]
    assert {each.sfu for each in people} == {"s1"}
    for each in people:
        answer = await each.asks_for_sfu(exclude=("s1",), reason="failed")
        assert isinstance(answer, player.AssignedSfu)
        assert answer.sfu != "s1"
    deadline = time.monotonic() + WITHIN_S
    for n in range(10_000):
        late = await Player.join(it.b.ws, f"late-{it.tag}-{n}", "late", exclude=("s2",))
        await late.close()
        # What is in flight to s1 may send the first ones to s3 before the other router has heard of the failures.
        record = (await it.explained(f"late-{it.tag}-{n}", 1))[0]
        passed_over = {each.sfu: each.passed_over for each in record.candidates}
        if passed_over == {"s3": "", "s1": "failing-connections"}:
            break
        assert time.monotonic() < deadline, f"the other router never heard of it: {passed_over}"
        await asyncio.sleep(0.1)
    assert late.sfu == "s3"
    async with aiohttp.ClientSession() as session, session.get(f"{it.a.http}/metrics") as response:
        metrics = await response.text()
    assert "sluice_router_ice_failures_total 6.0" in metrics
    assert "sluice_router_placement_inflight" in metrics
    for each in people:
        await each.close()
