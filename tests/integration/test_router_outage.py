"""Routers whose Redis goes away and comes back empty (invariant 5), as real processes."""

from __future__ import annotations

import asyncio
import time

import aiohttp

from shared.embedded import EmbeddedRedis
from shared.messages import player
from shared.records import Presence
from tests.router.actors import Player, RouterProcess, Sfu


def test_redis_away_sessions_stay_joins_go_on_and_a_cordon_made_meanwhile_reaches_everybody_after() -> None:
    """On a loop of its own: it starts and stops its own server."""
    asyncio.run(_redis_away())


async def _redis_away() -> None:
    redis = EmbeddedRedis()
    await redis.start()
    routers = [RouterProcess(name, redis=redis.url, fleet="t") for name in ("a", "b")]
    try:
        a, b = (router.wait_up() for router in routers)
        s1 = await Sfu("s1", [a.ws], load=0.1).start()  # the second router hears of it through Redis alone
        s2 = await Sfu("s2", [a.ws, b.ws], load=0.5).start()
        await _until_up(b, "s1")
        ann = await Player.join(a.ws, "room", "ann")
        bob = await Player.join(b.ws, "room", "bob")
        assert (ann.sfu, bob.sfu) == ("s1", "s1")
        await ann.say(player.Publish(publication="mic", kind="audio", sfu="s1"))
        await bob.hears(player.RoomUpdate, where=lambda m: bool(m.publications))
        await redis.stop()
        await _until_store(b, up=False)
        # Liveness does not depend on it, sessions go on, and so does placement, by what was last known.
        async with aiohttp.ClientSession() as session, session.get(f"{b.http}/healthz") as response:
            assert response.status == 200
        late = await Player.join(b.ws, "room", "late")
        assert late.sfu == "s1"
        await late.say(player.SetPresence(presence=Presence(at_desk=False)))
        await bob.hears(player.RoomUpdate, where=lambda m: any(not p.presence.at_desk for p in m.players))
        await s1.cordon()
        await ann.hears(player.CordonedSfu)
        assert bob.count(player.CordonedSfu) == 0
        assert isinstance(moved := await ann.asks_to_leave(s1.state), player.AssignedSfu)
        assert moved.sfu == "s2"
        await redis.start()
        for each in (bob, late):
            assert (await each.hears(player.CordonedSfu)).sfu == "s1"
        await ann.hears(player.RoomUpdate, where=lambda m: any(p.identity == "late" for p in m.players))
        async with aiohttp.ClientSession() as session:
            await until_async(lambda: _in_redis(session, a, {"ann", "bob", "late"}, {"mic"}))
            await until_async(lambda: _in_redis(session, b, {"ann", "bob", "late"}, {"mic"}))
        for each in (ann, bob, late):
            assert each.closed is None, "sessions are untouched"
            assert not [m for m in each.heard if isinstance(m, player.RoomUpdate) and (m.left or m.ended)]
            assert each.count(player.SfuGone) == 0
            await each.close()
        await s1.stop()
        await s2.stop()
    finally:
        for router in routers:
            router.kill()
        await redis.stop()


async def until_async(condition, *, within_s: float = 20.0) -> None:  # type: ignore[no-untyped-def]
    """As `until`, for a condition that asks another program."""
    deadline = time.monotonic() + within_s
    while not await condition():
        assert time.monotonic() < deadline, "did not come about"
        await asyncio.sleep(0.05)


async def _in_redis(session: aiohttp.ClientSession, router: RouterProcess, people: set[str], tracks: set[str]) -> bool:
    async with session.get(f"{router.http}/api/rooms/room") as response:
        room = await response.json()
    seen = {p["identity"] for p in room["players"]}, {p["publication"] for p in room["publications"]}
    return seen == (people, tracks)


async def _until_up(router: RouterProcess, sfu: str) -> None:
    async def placeable() -> bool:
        async with aiohttp.ClientSession() as session, session.get(f"{router.http}/api/sfus") as response:
            return any(row["sfu"] == sfu and row["placeable"] for row in (await response.json())["sfus"])

    await until_async(placeable)


async def _until_store(router: RouterProcess, *, up: bool) -> None:
    async def so() -> bool:
        async with aiohttp.ClientSession() as session, session.get(f"{router.http}/api/sfus") as response:
            return bool((await response.json())["store_up"] is up)

    await until_async(so)
