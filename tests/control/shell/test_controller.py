"""A controller's ticks against a real server that loses answers, or all it had."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import msgspec
import pytest

from control.core.pool import Listing, PoolNode
from control.core.scaling_settings import ScalingSettings
from control.shell.controller import Controller
from shared.errors import StoreUnavailable
from shared.scaling_records import ScalingRecord, ScalingState
from shared.store.store import Store

SETTINGS = ScalingSettings(tick_s=15.0, cooldown_s=300.0)


class Forgetful(Store):
    """Writes, and says that it did not."""

    loses_answers = False

    async def put_scaling(self, token: int, state: ScalingState, records: Sequence[ScalingRecord] = ()) -> None:
        await super().put_scaling(token, state, records)
        if self.loses_answers:
            raise StoreUnavailable(operation="put_scaling", detail="the answer got lost")


class NoNodes:
    """A pool that has no nodes and launches none."""

    name = "none"

    async def list(self) -> Listing:
        return Listing(nodes=())

    async def launch(self, request: str) -> PoolNode:
        raise AssertionError(request)

    async def prefer_victim(self, node: str) -> None:
        raise AssertionError(node)

    async def terminate(self, node: str) -> None:
        raise AssertionError(node)

    async def close(self) -> None: ...


class World:
    """One controller that leads, on a clock of the test's."""

    def __init__(self, store: Forgetful) -> None:
        self.store = store
        self.now = 1000.0
        self.it = Controller("c", SETTINGS, store=store, pool=NoNodes(), dry_run=True)
        self.it._clock = lambda: self.now
        self.token = 0

    async def lead(self) -> None:
        self.token = (await self.store.take_lease("c", token=self.token, lease_s=60.0)).leader.token

    async def tick(self) -> str:
        self.now += SETTINGS.tick_s
        return await self.it._tick(self.token)

    async def cooldown_left_s(self) -> float:
        return (await self.store.read_scaling_state(self.token)).state.cooldown_left_s


@pytest.fixture
async def world(redis_url: str, fleet: str) -> AsyncIterator[World]:
    store = Forgetful(redis_url, fleet=fleet, timeout_s=20.0)
    world = World(store)
    await world.lead()
    await store.put_scaling(world.token, ScalingState(tick=1, cooldown_left_s=300.0))
    assert await world.tick() != "store_down", "the first of a term counts no time"
    yield world
    await store.close()


async def test_time_counts_once_though_the_answer_to_a_write_gets_lost(world: World) -> None:
    world.store.loses_answers = True
    assert [await world.tick() for _ in range(4)] == ["store_down"] * 4
    world.store.loses_answers = False
    await world.tick()
    assert await world.cooldown_left_s() == 300.0 - 5 * SETTINGS.tick_s


async def test_a_whole_cooldown_begins_when_redis_has_lost_its_data(world: World) -> None:
    await world.tick()
    assert await world.cooldown_left_s() == 300.0 - SETTINGS.tick_s
    for key in [world.store.keys.scaling_state, world.store.keys.scaling_lease, world.store.keys.scaling_token]:
        await world.store._send("flush", "DEL", key)
    await world.lead()
    world.it._ticked = None  # as at the beginning of any term
    await world.tick()
    assert await world.cooldown_left_s() == 300.0
    assert world.it.metrics.bad_input.labels("state-lost")._value.get() == 1


async def test_a_whole_cooldown_begins_when_redis_knows_less_than_was_stored(world: World) -> None:
    """A replica has taken over that lacks the last writes: the change may have been among them."""
    kept = (await world.store.read_scaling_state(world.token)).state
    await world.tick()
    await world.tick()
    await world.store.put_scaling(world.token, msgspec.structs.replace(kept, cooldown_left_s=0.0))
    await world.tick()
    assert await world.cooldown_left_s() == 300.0 - SETTINGS.tick_s
    assert world.it.metrics.bad_input.labels("state-lost")._value.get() == 1
    await world.tick()
    assert await world.cooldown_left_s() == 300.0 - 2 * SETTINGS.tick_s
    assert world.it.metrics.bad_input.labels("state-lost")._value.get() == 1
