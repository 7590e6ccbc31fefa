"""A player whose router dies while Redis stands still resumes on another one, which can't tell Redis yet."""

from __future__ import annotations

import asyncio
import random
import time

import pytest

from router.shell.router import Router
from router.shell.store_writer import StoreWriter
from tests.fakes.store import FakeStore
from tests.fakes.store_core import StoreCore
from tests.router.actors import Player, until
from tests.router.conftest import config


async def test_it_is_not_closed_for_what_redis_still_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chaos, seed 12, round 116: `replaced`, after which a player does not come back."""
    core = StoreCore(clock=time.time)
    first = Router(config(router="r1"), FakeStore(core=core), rng=random.Random(1))
    second = Router(config(router="r2"), blind := FakeStore(core=core), rng=random.Random(2))
    flush = StoreWriter._flush

    async def late(writer: StoreWriter) -> None:
        """What waits is written after the room has been read, as on a busy machine."""
        await asyncio.sleep(0.5)
        await flush(writer)

    for router in (first, second):
        await router.start()
    try:
        ann = await Player.join(first.state.announced_ws, "kitchen", "ann")
        await until(lambda: core.read_room("kitchen").players, what="its record in Redis")
        ann.connection.transport.abort()
        monkeypatch.setattr(StoreWriter, "_flush", late)
        blind.down = True
        again = await Player.resume(second.state.announced_ws, ann)
        assert again.welcome.resumed
        blind.down = False
        await until(
            lambda: core.read_room("kitchen").players[ann.welcome.player].router == "r2", what="its record is renewed"
        )
        await until(lambda: first.state.rooms.get("kitchen") is None, what="the first router lets go of it")
        assert again.closed is None
        assert second.state.rooms.get("kitchen") is not None
    finally:
        for router in (first, second):
            await router.stop()
