"""A TCP proxy that can be cut and frozen: a websocket's bad road."""

from __future__ import annotations

import asyncio
import contextlib

CHUNK = 64 * 1024


class TcpRoad:
    """Open it with `TcpRoad.open`, end it with `close`. What connects to `port` reaches `target`, while the road is
    open."""

    def __init__(self, target: int, *, host: str = "127.0.0.1") -> None:
        self.target = target
        self.port = 0
        self._host = host
        self._server: asyncio.Server | None = None
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._is_cut = False
        self._pairs: set[asyncio.Task[None]] = set()

    @classmethod
    async def open(cls, target: int, *, host: str = "127.0.0.1") -> TcpRoad:
        """Listen on any free port of `host` and pass on to port `target` there. Raises `OSError`."""
        road = cls(target, host=host)
        road._server = await asyncio.start_server(road._arrived, host, 0)
        road.port = road._server.sockets[0].getsockname()[1]
        return road

    def cut(self) -> None:
        """Reset what is connected, and whatever connects from now on."""
        self._is_cut = True
        for pair in list(self._pairs):
            pair.cancel()

    def freeze(self) -> None:
        """Nothing passes and nothing ends; what is sent meanwhile waits, as behind a network that is away."""
        self._flowing.clear()

    def mend(self) -> None:
        """Open for what connects from now on, and for what was frozen."""
        self._is_cut = False
        self._flowing.set()

    async def close(self) -> None:
        """End it and all that is connected."""
        self.cut()
        if self._server is not None:
            self._server.close()
        await asyncio.gather(*self._pairs, return_exceptions=True)

    async def _arrived(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_cut:
            writer.transport.abort()
            return
        task = asyncio.current_task()
        assert task is not None
        self._pairs.add(task)
        with contextlib.suppress(asyncio.CancelledError, OSError):
            await self._carry(reader, writer)
        self._pairs.discard(task)
        writer.transport.abort()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._flowing.wait()
        far_reader, far_writer = await asyncio.open_connection(self._host, self.target)
        there = asyncio.create_task(self._pass(reader, far_writer))
        back = asyncio.create_task(self._pass(far_reader, writer))
        try:
            await asyncio.wait((there, back), return_when=asyncio.FIRST_COMPLETED)
            # What was on its way when one side ended still arrives.
            for stream in (writer, far_writer):
                async with asyncio.timeout(1.0):
                    await stream.drain()
        finally:
            for way in (there, back):
                way.cancel()
            far_writer.close() if not self._is_cut else far_writer.transport.abort()
            if not self._is_cut:
                writer.close()
                with contextlib.suppress(OSError, TimeoutError):
                    async with asyncio.timeout(1.0):
                        await writer.wait_closed()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(CHUNK):
                await self._flowing.wait()
                writer.write(data)
                await writer.drain()
        await self._flowing.wait()  # an end does not pass a frozen road either
