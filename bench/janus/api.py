"""Janus' API over a websocket on a Unix socket: JSON objects, answers found by their transaction."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from websockets.asyncio.client import ClientConnection, unix_connect
from websockets.exceptions import WebSocketException
from websockets.typing import Subprotocol

from bench.janus.process import JanusFailed

REQUEST_TIMEOUT_S = 30.0
KEEPALIVE_S = 20.0
"""Janus ends a session that said nothing for 60 s."""

MAX_ANSWER = 1 << 22
"""The list of a full room's publishers is the longest [bytes]."""

PLUGIN = "janus.plugin.videoroom"


class JanusApi:
    """A connection and its session, `open` until `close`."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self._numbers = itertools.count(1)
        self._waiting: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._up: dict[int, asyncio.Event] = {}
        self._session = 0
        self.lost: Counter[str] = Counter()
        """What Janus gave up on its own, by its reason; empty when all went well."""
        self._tasks = [asyncio.create_task(self._read()), asyncio.create_task(self._keep_alive())]

    @classmethod
    async def open(cls, path: Path) -> JanusApi:
        """Connect and begin a session. Raises `JanusFailed`."""
        try:
            connection = await unix_connect(
                str(path),
                "ws://localhost/",
                subprotocols=[Subprotocol("janus-protocol")],
                max_size=MAX_ANSWER,
                compression=None,
            )
        except (OSError, WebSocketException) as error:
            raise JanusFailed(f"its API refuses the connection: {error}") from None
        api = cls(connection)
        try:
            api._session = (await api._request("create"))["data"]["id"]
        except BaseException:
            await api.close()
            raise
        return api

    async def close(self) -> None:
        """End the connection, and with it the session. Safe twice."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._connection.close()

    async def info(self) -> dict[str, Any]:
        """Versions of Janus and of what it is linked to."""
        return await self._request("info")

    async def attach(self) -> int:
        """A new handle of the videoroom plugin: room for one PeerConnection."""
        handle: int = (await self._request("attach", session_id=self._session, plugin=PLUGIN))["data"]["id"]
        self._up[handle] = asyncio.Event()
        return handle

    async def detach(self, handle: int) -> None:
        """Close the handle, and its PeerConnection with it."""
        del self._up[handle]
        await self._request("detach", session_id=self._session, handle_id=handle)

    async def connected(self, handle: int) -> None:
        """Until ICE and DTLS are done as Janus sees it, shortly after its client does. Raises `JanusFailed`."""
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT_S):
                await self._up[handle].wait()
        except TimeoutError:
            raise JanusFailed(f"a connection is not up after {REQUEST_TIMEOUT_S:g} s {dict(self.lost)}") from None

    async def ask(
        self, handle: int, body: Mapping[str, Any], jsep: tuple[str, str] | None = None
    ) -> tuple[dict[str, Any], str]:
        """Send the plugin `body`, with `jsep` (`offer` or `answer`, and the SDP); what it answers, and with which SDP.

        Raises `JanusFailed` when it refuses.
        """
        more = {"jsep": {"type": jsep[0], "sdp": jsep[1]}} if jsep else {}
        answer = await self._request("message", session_id=self._session, handle_id=handle, body=dict(body), **more)
        data: dict[str, Any] = answer["plugindata"]["data"]
        if "error" in data:
            raise JanusFailed(f"{body['request']!r} refused: {data['error']} ({data.get('error_code')})")
        return data, answer.get("jsep", {}).get("sdp", "")

    async def _request(self, verb: str, **fields: Any) -> dict[str, Any]:
        transaction = str(next(self._numbers))
        answered = self._waiting[transaction] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT_S):
                await self._send(verb, transaction, fields)
                answer: dict[str, Any] = await answered
        except TimeoutError:
            raise JanusFailed(f"no answer to {verb!r} within {REQUEST_TIMEOUT_S:g} s") from None
        finally:
            del self._waiting[transaction]
        if answer["janus"] == "error":
            raise JanusFailed(f"{verb!r} refused: {answer.get('error')}")
        return answer

    async def _send(self, verb: str, transaction: str, fields: Mapping[str, Any]) -> None:
        try:
            await self._connection.send(json.dumps({"janus": verb, "transaction": transaction, **fields}))
        except WebSocketException as error:
            raise JanusFailed(f"its API's connection: {error}") from None

    async def _keep_alive(self) -> None:
        while True:
            await asyncio.sleep(KEEPALIVE_S)
            await self._send("keepalive", str(next(self._numbers)), {"session_id": self._session})

    async def _read(self) -> None:
        why = "closed"
        try:
            async for message in self._connection:
                self._take(json.loads(message))
        except (WebSocketException, ValueError, KeyError, TypeError) as error:
            why = repr(error)
        self.lost["the API's connection"] += 1
        for answered in self._waiting.values():
            if not answered.done():
                answered.set_exception(JanusFailed(f"its API's connection: {why}"))

    def _take(self, message: dict[str, Any]) -> None:
        match message["janus"]:
            case "webrtcup" if (up := self._up.get(message["sender"])) is not None:
                up.set()
            case "hangup" if message["sender"] in self._up:
                self.lost[f"hangup: {message.get('reason', '')}"] += 1
            case "timeout":
                self.lost["session timeout"] += 1
            case "ack":  # of a keepalive, or of a message whose answer is an event to come
                return
            case _:
                answered = self._waiting.get(message.get("transaction", ""))
                if answered is not None and not answered.done():
                    answered.set_result(message)
