"""Servers and worlds for the tests of the store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from redis.asyncio import Redis

from shared.embedded import EmbeddedRedis
from shared.host.ports import Ports
from tests.fakes.needed import need_installed
from tests.shared.worlds import MemoryWorld, RedisWorld, World

DEBIAN_REDIS = Path("/usr/bin/redis-server")


@pytest.fixture(scope="session")
def debian_redis_url() -> Iterator[str]:
    """A server of the distribution's own package."""
    need_installed(DEBIAN_REDIS.exists(), str(DEBIAN_REDIS), "apt-get install redis-server")
    server = EmbeddedRedis(binary=str(DEBIAN_REDIS))
    asyncio.run(server.start())
    yield server.url
    asyncio.run(server.stop())


@pytest.fixture(scope="session")
def cluster_url() -> Iterator[str]:
    """A Cluster of one node that serves all slots."""
    # Its bus is 10,000 ports up unless told, which is no port at all for the highest of the free ones.
    server = EmbeddedRedis(settings={"cluster-enabled": "yes", "cluster-port": str(Ports().take())})
    asyncio.run(_start_cluster(server))
    yield server.url
    asyncio.run(server.stop())


async def _start_cluster(server: EmbeddedRedis) -> None:
    await server.start()
    client: Redis = Redis.from_url(server.url)
    try:
        await client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)  # type: ignore[no-untyped-call]
        async with asyncio.timeout(30):
            while not await _serves(client):  # noqa: ASYNC110 - another process can't set an event here
                await asyncio.sleep(0.02)
    finally:
        await client.aclose()


async def _serves(client: Redis) -> bool:
    info: dict[str, str] = await client.execute_command("CLUSTER INFO")  # type: ignore[no-untyped-call]
    return info["cluster_state"] == "ok"


@pytest.fixture(params=["memory", "valkey", "debian-redis", "cluster"])
def place(request: pytest.FixtureRequest) -> tuple[str, str]:
    """The name of each backend in turn, and the URL of its server."""
    servers = {"valkey": "redis_url", "debian-redis": "debian_redis_url", "cluster": "cluster_url"}
    name: str = request.param
    return name, request.getfixturevalue(servers[name]) if name in servers else ""


@pytest.fixture
async def world(place: tuple[str, str], fleet: str) -> AsyncIterator[World]:
    """Each backend in turn, empty."""
    name, url = place
    made: World
    if name == "memory":
        made = MemoryWorld()
    elif name == "cluster":
        made = RedisWorld(url.replace("redis://", "redis+cluster://"), fleet, node=url)
    else:
        made = RedisWorld(url, fleet)
    yield made
    await made.close()
