"""A player's websocket to an SFU that goes away and comes back, with an SFU that only lets in."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from player.shell import sfu_socket as module
from player.shell.sfu_socket import SfuSocket, SocketCallbacks
from shared.messages import media as m
from shared.messages.base import encode
from shared.messages.codes import CloseCode
from shared.messages.player import Failed

WITHIN_S = 10.0


async def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not holds():
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(0.005)


class Sfu:
    """Answers `enter`; `knows` says which credentials open a session."""

    def __init__(self) -> None:
        self.entries: list[m.Enter] = []
        self.said: list[m.ToSfu] = []
        self.open: list[ServerConnection] = []
        self.knows: Callable[[m.Enter], bool] = lambda enter: True
        self.refusal = (Failed(code="bad-token"), CloseCode.BAD_TOKEN)
        self.silent = False
        self._server: Server | None = None
        self._port = 0

    async def start(self) -> None:
        self._server = await serve(self._serve, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        assert self._server is not None
        for connection in self.open:
            connection.transport.abort()
        self._server.close()
        await self._server.wait_closed()

    @property
    def address(self) -> str:
        return f"ws://127.0.0.1:{self._port}/media"

    async def _serve(self, connection: ServerConnection) -> None:
        try:
            async for frame in connection:
                message = m.to_sfu.read(frame)
                if not isinstance(message, m.Enter):
                    self.said.append(message)
                    continue
                self.entries.append(message)
                if self.silent:
                    continue
                if self.knows(message):
                    self.open.append(connection)
                    await connection.send(encode(m.Entered(sfu="a", reentry=f"back-{len(self.entries)}")))
                else:
                    await connection.send(encode(self.refusal[0]))
                    await connection.close(self.refusal[1])
        except ConnectionClosed:
            pass


class Owner:
    """Keeps what it is told; `media` says whether a peer connection lives."""

    def __init__(self, sfu: Sfu) -> None:
        self.heard: list[str] = []
        self.media = True
        self.socket = SfuSocket(
            sfu.address,
            "token",
            SocketCallbacks(
                entered=lambda complete: self.heard.append("entered" if complete else "entered as less"),
                message=lambda message: self.heard.append(type(message).__name__),
                away=lambda reason: self.heard.append(f"away: {reason}"),
                ended=lambda reason: self.heard.append(f"ended: {reason}"),
                carries_media=lambda: self.media,
            ),
            rng=random.Random(1),
        )


@asynccontextmanager
async def inside() -> AsyncIterator[tuple[Sfu, Owner]]:
    """A socket that was let in."""
    sfu = Sfu()
    await sfu.start()
    owner = Owner(sfu)
    run = asyncio.create_task(owner.socket.run())
    try:
        await until(lambda: owner.heard == ["entered"])
        yield sfu, owner
    finally:
        run.cancel()
        await asyncio.gather(run, return_exceptions=True)
        await owner.socket.close()
        await sfu.stop()


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "full_jitter", lambda attempt, rng: 0.02)
    monkeypatch.setattr(module, "AWAY_S", 0.3)
    monkeypatch.setattr(module, "ENTRY_S", 0.3)


async def test_a_websocket_that_breaks_comes_back_with_the_credential_that_the_sfu_gave() -> None:
    """Row 7: whatever the age of the token."""
    async with inside() as (sfu, owner):
        sfu.knows = lambda enter: bool(enter.reentry)
        for turn in range(2):
            sfu.open[-1].transport.abort()
            await until(lambda turn=turn: owner.heard == ["entered"] * (turn + 2))  # type: ignore[misc]
        assert [entry.reentry for entry in sfu.entries] == ["", "back-1", "back-2"]
        assert owner.socket.inside


async def test_while_the_media_lives_it_is_tried_until_the_sfu_is_there_again() -> None:
    """Row 8. The owner hears that it is away for long, once."""
    async with inside() as (sfu, owner):
        await sfu.stop()
        await until(lambda: len(owner.heard) > 1)
        assert owner.heard[1:] == ["away: websocket-broke"]
        assert not owner.socket.send(m.Subscribe())
        await asyncio.sleep(0.4)
        await sfu.start()
        await until(lambda: owner.socket.inside)
        assert owner.heard[1:] == ["away: websocket-broke", "entered"]


async def test_a_short_absence_is_not_told() -> None:
    async with inside() as (sfu, owner):
        sfu.open[-1].transport.abort()
        await until(lambda: len(owner.heard) > 1)
        await asyncio.sleep(0.4)
        assert owner.heard == ["entered", "entered"]


async def test_without_media_it_is_tried_once_and_then_it_is_the_end() -> None:
    async with inside() as (sfu, owner):
        owner.media = False
        sfu.open[-1].transport.abort()
        await until(lambda: owner.heard == ["entered", "entered"])
        await sfu.stop()
        await until(lambda: owner.socket.over)
        assert owner.heard[2:] == ["ended: unreachable"]


async def test_the_media_that_ends_while_it_is_away_ends_it() -> None:
    async with inside() as (sfu, owner):
        await sfu.stop()
        await asyncio.sleep(0.1)
        owner.media = False
        await until(lambda: owner.socket.over)
        assert owner.heard[1:] == ["ended: unreachable"]


async def test_a_refused_credential_is_followed_by_the_token_and_then_by_one_from_the_router() -> None:
    async with inside() as (sfu, owner):
        sfu.knows = lambda enter: enter.token == "new"
        sfu.open[-1].transport.abort()
        await until(lambda: owner.socket.needs_token)
        assert [(entry.token, entry.reentry) for entry in sfu.entries[1:]] == [("token", "back-1"), ("token", "")]
        assert owner.heard[1:] == ["away: bad-token"]
        owner.socket.renew(sfu.address, "new")
        await until(lambda: owner.socket.inside)
        assert not owner.socket.needs_token


async def test_other_grants_are_asked_for_with_their_token_even_while_it_was_away() -> None:
    async with inside() as (sfu, owner):
        await sfu.stop()
        owner.socket.grant(sfu.address, "more")
        await sfu.start()
        await until(lambda: owner.socket.inside)
        assert (sfu.entries[-1].token, sfu.entries[-1].reentry) == ("more", "")
        sfu.open[-1].transport.abort()
        await until(lambda: len(sfu.entries) == 3)
        assert sfu.entries[-1].reentry, "these grants are ours by now"


async def test_a_renewal_of_what_is_open_takes_a_new_websocket_so_that_the_sfu_says_all_again() -> None:
    async with inside() as (sfu, owner):
        owner.socket.renew(sfu.address, "new")
        await until(lambda: owner.heard == ["entered", "entered"])
        assert (sfu.entries[-1].token, sfu.entries[-1].reentry) == ("new", "back-1")
        assert len(sfu.open) == 2


async def test_an_sfu_that_takes_the_connection_and_says_nothing_is_tried_again() -> None:
    async with inside() as (sfu, owner):
        sfu.silent = True
        sfu.open[-1].transport.abort()
        await until(lambda: len(sfu.entries) > 2)
        sfu.silent = False
        await until(lambda: owner.socket.inside)


async def test_an_sfu_that_ends_is_the_end() -> None:
    async with inside() as (sfu, owner):
        await sfu.open[-1].send(encode(m.Closing()))
        await until(lambda: owner.socket.over)
        await sfu.open[-1].close(CloseCode.TERMINATING)
        await asyncio.sleep(0.1)
        assert owner.heard[1:] == ["ended: terminating"]
        assert len(sfu.entries) == 1


async def test_a_first_entry_that_is_refused_is_the_end() -> None:
    sfu = Sfu()
    sfu.knows, sfu.refusal = (lambda enter: False), (Failed(code="sfu-cordoned"), CloseCode.REFUSED)
    await sfu.start()
    owner = Owner(sfu)
    await owner.socket.run()
    assert owner.heard == ["ended: sfu-cordoned"]
    await sfu.stop()


async def test_an_sfu_that_lets_us_in_and_closes_at_once_is_tried_ever_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in jitsi/jitsi-videobridge pull request 2415, where each opening began the back-off again."""
    attempts: list[int] = []
    monkeypatch.setattr(module, "full_jitter", lambda attempt, rng: attempts.append(attempt) or 0.001)
    async with inside() as (sfu, owner):
        for turn in range(4):
            await until(lambda turn=turn: len(sfu.open) == turn + 1)  # type: ignore[misc]
            await sfu.open[-1].close(CloseCode.TOO_FAST)
        await until(lambda: len(owner.heard) == 5)
        assert attempts == [0, 1, 2, 3]
        monkeypatch.setattr(module, "STEADY_S", 0.0)
        await sfu.open[-1].close(CloseCode.TOO_FAST)
        await until(lambda: len(owner.heard) == 6)
        assert attempts[-1] == 0, "one that has lasted begins at the start"


@pytest.mark.parametrize("code", [1000, 1001, 1006, 1011, CloseCode.SLOW_READER, CloseCode.IDLE])
async def test_whatever_a_proxy_or_the_sfu_closes_it_with_it_comes_back(code: int) -> None:
    """As in jitsi/lib-jitsi-meet pull request 2224: a proxy that is recycled closes with 1001."""
    async with inside() as (sfu, owner):
        if code == 1006:
            sfu.open[-1].transport.abort()
        else:
            await sfu.open[-1].close(code)
        await until(lambda: owner.heard == ["entered", "entered"])
