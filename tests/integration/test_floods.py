"""Floods on real processes that may open few files: health answers all the time, the rest are told, joins go on."""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp

from tests.fakes.media_player import MediaPlayer
from tests.fakes.sfu_process import SfuProcess
from tests.router.actors import Player, RouterProcess

FILES = 256
FLOOD = 400
LIMITED = ("prlimit", f"--nofile={FILES}:{FILES}")
HALF_A_REQUEST = b"GET / HTTP/1.1\r\nHost: t\r\n"


async def flood(url: str) -> list[socket.socket]:
    """Half of them say nothing, half begin a request; from two addresses of their own."""
    loop, at = asyncio.get_running_loop(), urlsplit(url)
    assert at.port is not None
    opened = []
    for number in range(FLOOD):
        sock = socket.socket()
        sock.setblocking(False)
        sock.bind((f"127.0.0.{2 + number % 2}", 0))
        await loop.sock_connect(sock, ("127.0.0.1", at.port))
        if number % 2:
            with contextlib.suppress(OSError):
                sock.send(HALF_A_REQUEST)
        opened.append(sock)
    return opened


def told_503(socks: list[socket.socket]) -> int:
    """How many heard a typed refusal."""
    count = 0
    for sock in socks:
        with contextlib.suppress(OSError):
            count += sock.recv(4096).startswith(b"HTTP/1.1 503 ")
    return count


@asynccontextmanager
async def health_watched(http: str) -> AsyncIterator[list[int]]:
    """Asks for health and metrics over and over, each on a connection of its own; the answers."""
    statuses: list[int] = []

    async def ask() -> None:
        while True:
            for path in ("/healthz", "/metrics"):
                connector = aiohttp.TCPConnector(force_close=True)
                async with aiohttp.ClientSession(http, connector=connector) as session, session.get(path) as answer:
                    statuses.append(answer.status)
            await asyncio.sleep(0.02)

    asking = asyncio.create_task(ask())
    try:
        yield statuses
    finally:
        failed = asking.done() and asking.exception()
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        assert not failed, failed


async def test_an_sfu_that_may_open_few_files_answers_health_and_lets_players_in() -> None:
    sfu = await SfuProcess.start(before=LIMITED)
    try:
        async with health_watched(sfu.http) as statuses:
            idle = [*await flood(sfu.address), *await flood(sfu.http)]
            media = await flood("tcp://127.0.0.1:" + re.findall(r" tcp=(\d+)", sfu.log)[0])
            during = MediaPlayer(sfu.address, "during")
            await during.enter()
            await asyncio.sleep(1.0)
            assert told_503(idle) > FLOOD, "most are refused, in words"
            assert len(statuses) > 10
        for sock in (*idle, *media):
            sock.close()
        after = MediaPlayer(sfu.address, "after")
        await after.enter()
        assert set(statuses) == {200}
        assert "[front-http-" in sfu.log
        assert "[front-players-" in sfu.log
        assert f"{FILES} open files are allowed" in sfu.log
        assert "nofile=" in sfu.log
        assert "Traceback" not in sfu.log
        await during.close()
        await after.close()
    finally:
        await sfu.kill()


async def test_a_router_that_may_open_few_files_answers_health_and_lets_players_in(
    redis_url: str, fleet: str, tmp_path: Path
) -> None:
    with (tmp_path / "log").open("wb") as log:
        router = RouterProcess("r1", redis=redis_url, fleet=fleet, before=LIMITED, stderr=log).wait_up()
        try:
            async with health_watched(router.http) as statuses:
                idle = [*await flood(router.ws), *await flood(router.http)]
                during = await Player.join(router.ws, "room", "during")
                await asyncio.sleep(1.0)
                assert told_503(idle) > FLOOD
                assert len(statuses) > 10
            for sock in idle:
                sock.close()
            after = await Player.join(router.ws, "room", "after")
            assert set(statuses) == {200}
            said = (tmp_path / "log").read_text()
            assert "[front-http-" in said
            assert "[front-players-" in said
            assert f"{FILES} open files are allowed" in said
            assert "Traceback" not in said
            await during.close()
            await after.close()
        finally:
            router.kill()
