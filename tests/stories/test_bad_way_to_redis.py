"""Two whole routers whose way to Redis loses, delays, doubles and reorders calls: a drain story all the same."""

from __future__ import annotations

import asyncio
import random
import time

import pytest

from router.shell.router import Router
from shared.messages import player
from tests.fakes.hostile_store import HostileStore
from tests.fakes.store_core import StoreCore
from tests.router.actors import Player, Sfu, until
from tests.router.conftest import config


@pytest.mark.parametrize("seed", [1, 2])
async def test_everybody_hears_of_the_cordon_and_no_player_is_put_back(seed: int) -> None:
    core, rng = StoreCore(time.time), random.Random(seed)
    routers = [
        Router(config(router=name), HostileStore(core, rng=rng, loss=0.04, doubled=0.1, delay_s=0.01), rng=rng)
        for name in "ab"
    ]
    await asyncio.gather(*(router.start() for router in routers))
    near, far = (router.state.announced_ws for router in routers)
    s1 = await Sfu("s1", [near], load=0.1).start()
    s2 = await Sfu("s2", [near, far], load=0.9).start()
    await until(lambda: _placeable(routers[1], "s1"), what="the far router knows s1 through Redis")
    people = [await Player.join((near, far)[n % 2], "room", f"p{n}") for n in range(6)]
    assert {each.sfu for each in people} == {"s1"}

    await s1.cordon()
    for each in people:
        heard = await each.hears(player.CordonedSfu)
        answer = await each.asks_to_leave(s1.state, revision=heard.revision)
        assert isinstance(answer, player.AssignedSfu)
        assert answer.sfu == "s2"
        await each.say(player.Moved(sfu="s2", left="s1"))
    late = await Player.join(far, "room", "late")
    assert late.sfu == "s2"

    everybody = {f"p{n}" for n in range(6)} | {"late"}
    for router in routers:
        room = router.state.rooms.get("room")
        assert room is not None
        await until(lambda room=room: {p.identity for p in room.players.values()} == everybody, what="all are seen")
        await until(lambda room=room: {p.sfu for p in room.players.values()} == {"s2"}, what="all have moved")
    assert [each.closed for each in people] == [None] * 6, "no player was cut"
    for each in (*people, late):
        await each.close()
    await asyncio.gather(s1.stop(), s2.stop())
    for router in routers:
        assert router.failed() is None
        await router.stop()


def _placeable(router: Router, sfu: str) -> bool:
    return router.state.directory.refusal(sfu, now=router.state.mono()) is None
