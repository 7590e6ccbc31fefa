"""One hostile client after another against a real router and a real SFU, while a call goes on that must not notice."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from shared.host.files import raise_open_files
from shared.messages import player
from shared.messages.base import encode
from shared.messages.codes import CloseCode
from shared.messages.media import Enter
from shared.tokens import OperatorClaims, PlayerClaims, SfuClaims, issue
from tests.fakes.media_player import MediaPlayer
from tests.fakes.sfu_process import SECRET, SfuProcess
from tests.router.actors import Player, RouterProcess, until

OLD, GONE = "the key before, being replaced: 32 bytes", "a key that was withdrawn: 32 bytes long"
APP = "https://app.example.org"
EVIL = "https://evil.example"
ATTACKER = "127.0.0.66"
FLOOD = 600
NO_PROXY = {"trusted_proxies": "192.0.2.1", "allowed_origins": APP}


@pytest.fixture
async def router(redis_url: str, fleet: str, tmp_path: Path) -> AsyncIterator[RouterProcess]:
    raise_open_files()
    keys = tmp_path / "keys"
    keys.write_text(f"{SECRET}\n{OLD}\n")
    with (tmp_path / "router.log").open("wb") as log:
        running = RouterProcess(
            "r1",
            redis=redis_url,
            fleet=fleet,
            stderr=log,
            secret="",
            secret_file=keys,
            max_joins_per_minute=5,
            **NO_PROXY,
        ).wait_up()
        yield running
        running.kill()


def token(key: str, identity: str = "ann", room: str = "room") -> str:
    return issue(PlayerClaims(room=room, identity=identity), secret=key, now_at=time.time(), ttl_s=600)


async def joined(router: RouterProcess, key: str, identity: str) -> Player:
    peer = await Player.open(router.ws)
    await peer.say(player.Join(token=token(key, identity)))
    await peer.hears(player.Welcome)
    return peer


async def status_of_page(url: str, origin: str) -> int:
    """101, or what a page of this origin is answered."""
    try:
        async with connect(url, additional_headers={"Origin": origin}):
            return 101
    except InvalidStatus as no:
        return no.response.status_code


async def flood(url: str) -> list[socket.socket]:
    """Silent connections of one address."""
    loop, at = asyncio.get_running_loop(), urlsplit(url)
    opened = []
    for _ in range(FLOOD):
        sock = socket.socket()
        sock.setblocking(False)
        sock.bind((ATTACKER, 0))
        with contextlib.suppress(ConnectionError):
            await loop.sock_connect(sock, (at.hostname, at.port))
        opened.append(sock)
    return opened


async def metrics(http: str) -> str:
    async with aiohttp.ClientSession(http) as session, session.get("/metrics") as answer:
        return await answer.text()


async def test_a_call_goes_on_while_hostile_clients_try_what_they_can(router: RouterProcess, tmp_path: Path) -> None:
    sfu = await SfuProcess.start(routers=[router.ws], **NO_PROXY)
    try:
        honest = [await joined(router, SECRET, "honest"), await joined(router, OLD, "of-an-older-token")]
        inside = MediaPlayer(sfu.address, "inside")
        await inside.enter()

        # Pages of other origins. The page's own host and a listed app get in, and what is no browser sends none.
        for url in (f"{router.ws}/player", sfu.address):
            assert await status_of_page(url, EVIL) == 403
            assert await status_of_page(url, "null") == 403
            assert await status_of_page(url, APP) == 101
            assert await status_of_page(url, "http://localhost:7080") == 101

        # A key that was withdrawn opens nothing.
        peer = await Player.open(router.ws)
        await peer.say(player.Join(token=token(GONE)))
        assert await peer.ends() == CloseCode.BAD_TOKEN
        stranger = MediaPlayer(sfu.address, "stranger")
        claims = SfuClaims(sfu="sfu-t", room="room", player="stranger", identity="stranger")
        await stranger.open()
        await stranger.say(Enter(token=issue(claims, secret=GONE, now_at=time.time(), ttl_s=60)))
        assert await stranger.wait_closed() == CloseCode.BAD_TOKEN
        operator = issue(OperatorClaims(operator="eve"), secret=GONE, now_at=time.time(), ttl_s=60)
        async with aiohttp.ClientSession(router.http, headers={"Authorization": f"Bearer {operator}"}) as eve:
            answer = await eve.post("/api/sfus/sfu-t/drain")
            assert answer.status == 401

        # One identity that joins for ever.
        codes = []
        for _ in range(8):
            peer = await Player.open(router.ws)
            await peer.connection.send(encode(player.Join(token=token(SECRET, "restless", "elsewhere"))))
            await until(lambda peer=peer: peer.count(player.Welcome) + peer.count(player.Failed))
            codes.append(await peer.ends() if peer.count(player.Failed) else 0)
        assert codes.count(CloseCode.TOO_FAST) == 3

        # Floods of one address, at every port.
        floods = [sock for url in (router.ws, router.http, sfu.address, sfu.http) for sock in await flood(url)]
        late = await joined(router, SECRET, "late")
        newcomer = MediaPlayer(sfu.address, "newcomer")
        await newcomer.enter()
        for http in (router.http, sfu.http):
            assert 'connections_refused_total{port="players",why="address-waiting"}' in await metrics(http)
            assert 'connections_refused_total{port="players",why="origin"} 2.0' in await metrics(http)
        for sock in floods:
            sock.close()

        for n, peer in enumerate([*honest, late]):
            assert peer.closed is None
            await peer.say(player.Ping(n=n))
            await peer.hears(player.Pong)
            await peer.close()
        assert inside.close_code is None
        for each in (inside, newcomer, stranger):
            await each.close()
        logs = (tmp_path / "router.log").read_text() + sfu.log
        assert logs.count(f"a page of {EVIL} is refused") == 2
        assert logs.count(f"short of connections: one of {ATTACKER} ") >= 4
        assert "Traceback" not in logs
    finally:
        await sfu.kill()
