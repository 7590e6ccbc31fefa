"""Janus' API over a Unix socket: one JSON object a datagram, answers found by their transaction."""

from __future__ import annotations

import asyncio
import itertools
import json
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.janus_process import JanusFailed

REQUEST_TIMEOUT_S = 30.0
KEEPALIVE_S = 20.0
"""Janus ends a session that said nothing for 60 s."""

MAX_ANSWER = 1 << 20
MAX_REQUEST = 8191
"""Janus reads at most this many bytes of a request [bytes]; what is longer is cut."""

PLUGIN = "janus.plugin.videoroom"


class JanusApi:
    """A connection and its session. `close` it."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._loop = asyncio.get_running_loop()
        self._numbers = itertools.count(1)
        self._waiting: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._up: dict[int, asyncio.Event] = {}
        self._session = 0
        self._keeping: asyncio.Task[None] | None = None
        self.lost: list[str] = []
        """What Janus gave up on its own, and why; empty when all went well."""

    @classmethod
    async def open(cls, path: Path) -> JanusApi:
        """Connect and begin a session. Raises `JanusFailed`."""
        api = cls()
        try:
            api._socket.setblocking(False)
            await api._loop.sock_connect(api._socket, str(path))
            api._loop.add_reader(api._socket, api._read)
            api._session = (await api._request("create"))["data"]["id"]
        except BaseException as error:
            api.close()
            if isinstance(error, OSError):
                raise JanusFailed(f"its socket: {error}") from None
            raise
        api._keeping = asyncio.create_task(api._keep_alive())
        return api

    def close(self) -> None:
        """End the connection, and with it the session. Safe twice."""
        if self._keeping is not None:
            self._keeping.cancel()
        self._loop.remove_reader(self._socket)
        self._socket.close()

    async def info(self) -> dict[str, Any]:
        """Versions of Janus and of what it is linked to."""
        return await self._request("info")

    async def attach(self) -> int:
        """A new handle of the videoroom plugin."""
        handle: int = (await self._request("attach", session_id=self._session, plugin=PLUGIN))["data"]["id"]
        self._up[handle] = asyncio.Event()
        return handle

    async def ask(self, handle: int, body: Mapping[str, Any]) -> dict[str, Any]:
        """What the plugin answers at once."""
        return self._good(await self._message(handle, body, None))

    async def negotiate(self, handle: int, body: Mapping[str, Any], jsep: tuple[str, str] | None = None) -> Any:
        """Send `body`, with `jsep` (`offer` or `answer`, and the SDP); the plugin's data and the SDP it answers with."""
        event = await self._message(handle, body, jsep)
        return self._good(event), event.get("jsep", {}).get("sdp", "")

    async def connected(self, handle: int) -> None:
        """Until DTLS is up from Janus' point of view."""
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT_S):
                await self._up[handle].wait()
        except TimeoutError:
            raise JanusFailed(f"a PeerConnection is not up after {REQUEST_TIMEOUT_S:g} s {self.lost}") from None

    async def _message(self, handle: int, body: Mapping[str, Any], jsep: tuple[str, str] | None) -> dict[str, Any]:
        more: dict[str, Any] = {"jsep": {"type": jsep[0], "sdp": jsep[1]}} if jsep else {}
        return await self._request("message", session_id=self._session, handle_id=handle, body=dict(body), **more)

    async def _request(self, verb: str, **fields: Any) -> dict[str, Any]:
        transaction = str(next(self._numbers))
        answered = self._waiting[transaction] = self._loop.create_future()
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT_S):
                await self._send(verb, transaction, fields)
                answer = await answered
        except TimeoutError:
            raise JanusFailed(f"no answer to {verb!r} within {REQUEST_TIMEOUT_S:g} s") from None
        finally:
            del self._waiting[transaction]
        if answer["janus"] == "error":
            raise JanusFailed(f"{verb!r} refused: {answer.get('error')}")
        return answer

    async def _send(self, verb: str, transaction: str, fields: Mapping[str, Any]) -> None:
        request = json.dumps({"janus": verb, "transaction": transaction, **fields}, separators=(",", ":")).encode()
        if len(request) > MAX_REQUEST:
            raise JanusFailed(f"a request of {len(request)} bytes is too long for its Unix socket")
        try:
            await self._loop.sock_sendall(self._socket, request)
        except OSError as error:
            raise JanusFailed(f"its socket: {error}") from None

    @staticmethod
    def _good(answer: dict[str, Any]) -> dict[str, Any]:
        data: dict[str, Any] = answer.get("plugindata", {}).get("data", {})
        if "error" in data:
            raise JanusFailed(f"videoroom refused: {data['error']} ({data.get('error_code')})")
        return data

    async def _keep_alive(self) -> None:
        while True:
            await asyncio.sleep(KEEPALIVE_S)
            try:
                await self._send("keepalive", str(next(self._numbers)), {"session_id": self._session})
            except JanusFailed as error:
                return self.lost.append(error.detail)

    def _read(self) -> None:
        while True:
            try:
                datagram = self._socket.recv(MAX_ANSWER)
            except BlockingIOError:
                return
            except OSError as error:
                return self._ended(str(error))
            if not datagram:
                return self._ended("closed")
            try:
                self._take(json.loads(datagram))
            except (ValueError, KeyError, TypeError) as error:
                self.lost.append(f"an answer that can't be read: {error!r}")

    def _ended(self, why: str) -> None:
        self._loop.remove_reader(self._socket)
        self.lost.append(f"the API's connection: {why}")
        for answered in self._waiting.values():
            if not answered.done():
                answered.set_exception(JanusFailed(f"its API's connection: {why}"))

    def _take(self, message: dict[str, Any]) -> None:
        match message["janus"]:
            case "webrtcup":
                self._up[message["sender"]].set()
            case "hangup" | "detached" | "timeout" as what:
                self.lost.append(f"{what}: {message.get('reason', message.get('sender', ''))}")
            case "ack":  # the answer is an event that follows
                return
            case _:
                answered = self._waiting.get(message.get("transaction", ""))
                if answered is not None and not answered.done():
                    answered.set_result(message)
