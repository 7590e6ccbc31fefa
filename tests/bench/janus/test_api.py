"""Janus' API: answers find their request, refusals are errors, and what Janus gives up is counted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, unix_serve
from websockets.typing import Subprotocol

from bench.janus.api import JanusApi
from bench.janus.process import JanusFailed

Message = dict[str, Any]
Answers = Callable[[Message], list[Message]]
"""What the fake sends for a request; the transaction is filled in where there is none."""


@asynccontextmanager
async def api_of(path: Path, answers: Answers) -> AsyncIterator[JanusApi]:
    async def serve(connection: ServerConnection) -> None:
        async for text in connection:
            request = json.loads(text)
            for answer in answers(request):
                if answer == {"hang up": True}:
                    await connection.close()
                    return
                await connection.send(json.dumps({"transaction": request["transaction"], **answer}))

    async with unix_serve(serve, str(path / "api"), subprotocols=[Subprotocol("janus-protocol")]):
        api = await JanusApi.open(path / "api")
        try:
            yield api
        finally:
            await api.close()


def polite(request: Message) -> list[Message]:
    """A Janus that makes sessions and handles."""
    match request["janus"]:
        case "create":
            return [{"janus": "success", "data": {"id": 7}}]
        case "attach":
            return [{"janus": "success", "data": {"id": 70}}]
        case "detach":
            return [{"janus": "hangup", "sender": 70, "reason": "Close PC"}, {"janus": "success"}]
        case _:
            return []


async def test_the_event_answers_not_the_ack(tmp_path: Path) -> None:
    def answers(request: Message) -> list[Message]:
        if request["janus"] != "message":
            return polite(request)
        data = {"videoroom": "joined", "asked": request["body"]["request"]}
        event = {"janus": "event", "plugindata": {"data": data}, "jsep": {"type": "answer", "sdp": "v=0"}}
        return [{"janus": "ack"}, event]

    async with api_of(tmp_path, answers) as api:
        data, sdp = await api.ask(await api.attach(), {"request": "join"}, ("offer", "v=0 ours"))
        assert (data["asked"], sdp) == ("join", "v=0")


@pytest.mark.parametrize(
    "answer",
    [
        {"janus": "error", "error": {"code": 458, "reason": "no such thing"}},
        {"janus": "event", "plugindata": {"data": {"error": "no such thing", "error_code": 428}}},
    ],
)
async def test_a_refusal_is_an_error_with_its_reason(tmp_path: Path, answer: Message) -> None:
    async with api_of(tmp_path, lambda request: polite(request) or [answer]) as api:
        with pytest.raises(JanusFailed, match="no such thing"):
            await api.ask(await api.attach(), {"request": "join"})


async def test_a_handle_is_connected_once_janus_says_so(tmp_path: Path) -> None:
    up = {"janus": "webrtcup", "sender": 70, "transaction": ""}
    async with api_of(tmp_path, lambda request: polite(request) or [up]) as api:
        handle = await api.attach()
        waiting = asyncio.create_task(api.connected(handle))
        await asyncio.sleep(0)
        assert not waiting.done()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(api.info(), 0.2)
        await waiting


async def test_what_janus_gives_up_is_counted_and_what_we_leave_is_not(tmp_path: Path) -> None:
    gone = {"janus": "hangup", "sender": 70, "reason": "ICE failed", "transaction": ""}
    info = {"janus": "server_info"}
    async with api_of(tmp_path, lambda request: polite(request) or [gone, info]) as api:
        handle = await api.attach()
        await api.info()
        assert dict(api.lost) == {"hangup: ICE failed": 1}
        await api.detach(handle)
        assert dict(api.lost) == {"hangup: ICE failed": 1}


async def test_a_lost_connection_fails_who_waits(tmp_path: Path) -> None:
    async with api_of(tmp_path, lambda request: polite(request) or [{"hang up": True}]) as api:
        with pytest.raises(JanusFailed, match="connection"):
            await api.info()
        assert api.lost


async def test_a_socket_without_a_server_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(JanusFailed, match="refuses"):
        await JanusApi.open(tmp_path / "api")
