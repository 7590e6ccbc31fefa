"""How a player comes back to its routers, against routers that do as the test says."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from websockets.asyncio.server import ServerConnection, serve

from player.shell import router_connection as module
from player.shell.router_connection import Callbacks, RouterConnection, player_url
from player.shell.wire import ABNORMAL, Closed, MessageSocket
from shared.messages import player as p
from shared.messages.base import encode
from shared.messages.codes import CloseCode

WITHIN_S = 20.0


async def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not holds():
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(0.01)


def welcome(*, resumed: bool = False, window_s: float = 25.0) -> str:
    return encode(
        p.Welcome(
            player="me", resume_token="again", room="r", identity="ann", resumed=resumed, resume_window_s=window_s
        )
    )


class Routers:
    """A router whose behaviour per connection is a list of steps; the last one is repeated."""

    def __init__(self, *steps: object) -> None:
        self.steps = list(steps)
        self.firsts: list[p.ToRouter] = []
        self.url = ""

    async def connection(self, websocket: ServerConnection) -> None:
        self.firsts.append(p.to_router.read(await websocket.recv()))
        step = self.steps.pop(0) if len(self.steps) > 1 else self.steps[0]
        frames, code = step  # type: ignore[misc]
        for frame in frames:
            await websocket.send(frame)
        if code is not None:
            await websocket.close(code)
        await websocket.wait_closed()


@asynccontextmanager
async def routers(*steps: object) -> AsyncIterator[Routers]:
    scripted = Routers(*steps)
    async with serve(scripted.connection, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()[:2]
        scripted.url = f"ws://{host}:{port}"
        yield scripted


class Heard:
    def __init__(self, url: str) -> None:
        self.messages: list[p.ToPlayer] = []
        self.lost: list[Closed] = []
        self.link = RouterConnection(
            [url],
            Callbacks(
                join=lambda: p.Join(token="t"),
                resume=lambda token: p.Resume(resume_token=token),
                message=self.messages.append,
                lost=self.lost.append,
            ),
            rng=random.Random(1),
        )
        self.task = asyncio.create_task(self.link.run())

    async def end(self) -> None:
        await self.link.leave()
        await asyncio.wait_for(self.task, WITHIN_S)


async def test_a_lost_websocket_is_resumed_with_the_token() -> None:
    async with routers(([welcome()], 1011), ([welcome(resumed=True)], None)) as scripted:
        heard = Heard(scripted.url)
        await until(lambda: len(heard.messages) == 2)
        assert [type(first) for first in scripted.firsts] == [p.Join, p.Resume]
        assert scripted.firsts[1] == p.Resume(resume_token="again")
        assert (heard.link.resumes, [closed.code for closed in heard.lost]) == (1, [1011])
        await heard.end()


async def test_a_session_that_can_not_be_resumed_is_joined_again() -> None:
    async with routers(([welcome()], 1011), ([], CloseCode.NOT_RESUMABLE), ([welcome()], None)) as scripted:
        heard = Heard(scripted.url)
        await until(lambda: len(heard.messages) == 2)
        assert [type(first) for first in scripted.firsts] == [p.Join, p.Resume, p.Join]
        await heard.end()


async def test_a_router_that_would_have_us_join_is_not_avoided_for_another_that_may_hang(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A store was emptied while the player's router slept: the next one knows no session, and is well."""
    monkeypatch.setattr(module, "full_jitter", lambda attempt, rng: 0.0)
    async with (
        routers(([welcome()], 1011), ([], 1011)) as lost,
        routers(([], CloseCode.NOT_RESUMABLE), ([welcome()], None)) as well,
    ):
        heard = Heard(lost.url)
        heard.link._urls.append(player_url(well.url))
        await until(lambda: len(heard.messages) == 2)
        assert [type(first) for first in well.firsts] == [p.Resume, p.Join]
        assert len(lost.firsts) == 1
        await heard.end()


async def test_a_router_that_welcomes_us_and_closes_at_once_is_tried_ever_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As in jitsi/jitsi-videobridge pull request 2415, where each opening began the back-off again."""
    attempts: list[int] = []
    monkeypatch.setattr(module, "full_jitter", lambda attempt, rng: attempts.append(attempt) or 0.001)
    async with routers(([welcome()], 1011)) as scripted:
        heard = Heard(scripted.url)
        await until(lambda: len(attempts) >= 4)
        assert attempts[:4] == [1, 2, 3, 4]
        await heard.end()


async def test_after_the_window_it_joins() -> None:
    async with routers(([welcome(window_s=0.0)], 1011), ([welcome()], None)) as scripted:
        heard = Heard(scripted.url)
        await until(lambda: len(heard.messages) == 2)
        assert [type(first) for first in scripted.firsts] == [p.Join, p.Join]
        await heard.end()


@pytest.mark.parametrize(("code", "word"), [(CloseCode.REPLACED, "replaced"), (CloseCode.BAD_TOKEN, "bad-token")])
async def test_some_codes_are_final(code: CloseCode, word: str) -> None:
    async with routers(([welcome()], code)) as scripted:
        heard = Heard(scripted.url)
        await asyncio.wait_for(heard.task, WITHIN_S)
        assert heard.link.ended == word
        assert len(scripted.firsts) == 1


async def test_a_router_that_is_closing_is_left_and_resumed_elsewhere() -> None:
    closing = encode(p.RouterClosing(after_s=0.05))
    async with routers(([welcome(), closing], None), ([welcome(resumed=True)], None)) as scripted:
        heard = Heard(scripted.url)
        await until(lambda: heard.link.resumes == 1)
        await heard.end()


async def test_leaving_says_so() -> None:
    said: list[p.ToRouter] = []

    async def router(websocket: ServerConnection) -> None:
        said.append(p.to_router.read(await websocket.recv()))
        await websocket.send(welcome())
        async for frame in websocket:
            said.append(p.to_router.read(frame))

    async with serve(router, "127.0.0.1", 0) as server:
        heard = Heard(f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        await until(lambda: bool(heard.messages))
        await heard.end()
        await until(lambda: len(said) == 2)
        assert isinstance(said[1], p.Leave)


async def test_messages_of_a_newer_version_are_skipped_and_garbage_ends_the_connection() -> None:
    async with routers(([welcome(), '{"type":"from-the-future"}', encode(p.Pong(n=7)), "garbage"], None)) as scripted:
        wire = MessageSocket(f"{scripted.url}/player", p.to_player)
        got: list[p.ToPlayer] = []
        closed = await asyncio.wait_for(wire.run(lambda: p.Join(token="t"), got.append), WITHIN_S)
        assert got[1:] == [p.Pong(n=7)]
        assert (wire.unknown, closed.code, closed.opened) == (1, ABNORMAL, True)
        assert "not a router-to-player message" in closed.reason
        assert not wire.send(p.Leave()), "there is no connection any more"


async def test_no_router_there_is_told_without_an_exception() -> None:
    closed = await MessageSocket("ws://127.0.0.1:9/x", p.to_player).run(lambda: p.Leave(), lambda _: None)
    assert (closed.code, closed.opened) == (ABNORMAL, False)


def test_the_path_of_players_is_added() -> None:
    assert player_url("ws://h:1") == player_url("ws://h:1/") == player_url("ws://h:1/player") == "ws://h:1/player"
