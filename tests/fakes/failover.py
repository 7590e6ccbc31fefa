"""A fail-over of Redis behind one address, as by a proxy or a Kubernetes service: nothing cuts old connections."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from redis.asyncio import Redis

from shared.embedded import EmbeddedRedis


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


@asynccontextmanager
async def master_and_replica(binary: str | None = None) -> AsyncIterator[tuple[int, int]]:
    """The ports of two servers, the second in step with the first."""
    servers = [EmbeddedRedis(binary=binary, settings={"repl-diskless-sync-delay": "0"}) for _ in range(2)]
    try:
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
    finally:
        for server in servers:
            await server.stop()


async def fail_over(address: Address, old: int, new: int) -> None:
    """New connections go to what was the replica; the old master follows it now."""
    address.to = new
    await do(new, "REPLICAOF", "NO", "ONE")
    await do(old, "REPLICAOF", "127.0.0.1", new)
