"""A TCP road: open, cut, frozen, mended, and led to another program."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from rehearse.shell.chaos.tcp_road import TcpRoad


@asynccontextmanager
async def echo(prefix: bytes = b"") -> AsyncIterator[int]:
    """A server that sends lines back; its port."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(prefix + line)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


@asynccontextmanager
async def open_road(target: int) -> AsyncIterator[TcpRoad]:
    road = await TcpRoad.open(target)
    try:
        yield road
    finally:
        await road.close()


class End:
    """One connection over the road."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def at(cls, road: TcpRoad) -> End:
        return cls(*await asyncio.open_connection("127.0.0.1", road.port))

    async def asks(self, line: bytes, *, within_s: float = 5.0) -> bytes:
        self.writer.write(line)
        async with asyncio.timeout(within_s):
            return await self.reader.readline()


async def is_cut(end: End) -> bool:
    try:
        return await end.asks(b"there?\n") == b""
    except OSError:
        return True


async def test_what_is_sent_arrives_both_ways_and_the_end_too() -> None:
    async with echo() as port, open_road(port) as road:
        end = await End.at(road)
        assert await end.asks(b"one\n") == b"one\n"
        end.writer.close()
        other = await End.at(road)
        other.writer.write_eof()
        assert await other.reader.read() == b""


async def test_a_cut_resets_what_is_connected_and_what_connects_until_it_is_mended() -> None:
    async with echo() as port, open_road(port) as road:
        end = await End.at(road)
        assert await end.asks(b"one\n") == b"one\n"
        road.cut()
        assert await is_cut(end)
        assert await is_cut(await End.at(road))
        road.mend()
        assert await (await End.at(road)).asks(b"two\n") == b"two\n"


async def test_a_frozen_road_ends_nothing_and_delivers_late() -> None:
    async with echo() as port, open_road(port) as road:
        end = await End.at(road)
        assert await end.asks(b"one\n") == b"one\n"
        road.freeze()
        with pytest.raises(TimeoutError):
            await end.asks(b"two\n", within_s=0.2)
        late = await End.at(road)
        late.writer.write(b"new\n")
        assert not end.reader.at_eof()
        road.mend()
        async with asyncio.timeout(5):
            assert (await end.reader.readline(), await late.reader.readline()) == (b"two\n", b"new\n")


async def test_a_program_that_starts_again_is_reached_at_the_old_port() -> None:
    async with echo(b"a:") as first, echo(b"b:") as second, open_road(first) as road:
        assert await (await End.at(road)).asks(b"x\n") == b"a:x\n"
        road.target = second
        assert await (await End.at(road)).asks(b"x\n") == b"b:x\n"


async def test_where_nothing_listens_the_connection_ends() -> None:
    async with echo() as port:
        pass
    async with open_road(port) as road:
        assert await is_cut(await End.at(road))
