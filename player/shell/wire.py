"""A websocket of a player: messages in order to a callback, messages out through a bounded queue."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidURI

from shared.errors import BadMessage, UnknownMessage
from shared.messages.base import Message, Reader, encode
from shared.patience import PatientClient

MAX_FRAME = 1 << 20
"""Longest frame read [bytes]: a snapshot of a big room."""
MAX_WAITING = 1000
OPEN_S = 5.0
PING_S = 10.0
ABNORMAL = 1006

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Closed:
    """How a websocket ended: its close code, or `ABNORMAL` when it broke or never opened."""

    code: int
    reason: str
    opened: bool


class MessageSocket(Generic[T]):
    """One websocket to `url`; `run` it once. `unknown` counts messages of newer versions, which are skipped."""

    def __init__(self, url: str, reader: Reader[T]) -> None:
        self.url = url
        self.unknown = 0
        self._reader = reader
        self._waiting: asyncio.Queue[Message] = asyncio.Queue(MAX_WAITING)
        self._connection: ClientConnection | None = None

    def send(self, message: Message) -> bool:
        """Queue a message; False when the queue is full or there is no connection."""
        if self._connection is None:
            return False
        try:
            self._waiting.put_nowait(message)
        except asyncio.QueueFull:
            return False
        return True

    async def close(self) -> None:
        """Send what is queued, and close."""
        connection = self._connection
        if connection is not None:
            self._connection = None
            with contextlib.suppress(ConnectionClosed):
                while not self._waiting.empty():
                    await connection.send(encode(self._waiting.get_nowait()))
            await connection.close()

    async def run(self, first: Callable[[], Message], on_message: Callable[[T], None]) -> Closed:
        """Connect, send `first()`, and hand over what comes until the end. Cancelling it closes the websocket."""
        try:
            connection = await connect(
                self.url,
                open_timeout=OPEN_S,
                create_connection=PatientClient,
                ping_interval=PING_S,
                ping_timeout=PING_S,
                close_timeout=1.0,
                max_size=MAX_FRAME,
                compression=None,
                proxy=None,
            )
        except (OSError, TimeoutError, InvalidHandshake, InvalidURI, EOFError, ConnectionClosed) as error:
            return Closed(ABNORMAL, f"{type(error).__name__}: {error}"[:200], opened=False)
        self._connection = connection
        writer = asyncio.create_task(self._write(connection, first()))
        try:
            return await self._read(connection, on_message)
        finally:
            self._connection = None
            writer.cancel()
            await connection.close()

    async def _read(self, connection: ClientConnection, on_message: Callable[[T], None]) -> Closed:
        try:
            async for frame in connection:
                try:
                    message = self._reader.read(frame)
                except UnknownMessage:
                    self.unknown += 1
                    continue
                on_message(message)
        except ConnectionClosed:
            pass
        except BadMessage as error:
            return Closed(ABNORMAL, error.sentence(), opened=True)
        return Closed(connection.close_code or ABNORMAL, connection.close_reason or "", opened=True)

    async def _write(self, connection: ClientConnection, first: Message) -> None:
        with contextlib.suppress(ConnectionClosed):
            await connection.send(encode(first))
            while True:
                await connection.send(encode(await self._waiting.get()))
