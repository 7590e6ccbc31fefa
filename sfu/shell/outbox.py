"""What is on its way to one player: sent without ever waiting, within a bound (invariant 10)."""

from __future__ import annotations

import asyncio
import contextlib

from websockets.asyncio.server import ServerConnection, broadcast

from shared.messages.base import Message, encode
from shared.messages.codes import CloseCode

MAX_BUFFERED = 1024 * 1024
"""Bytes that may wait for a player that reads too slowly; beyond that it is closed with `4008`."""
CLOSE_TIMEOUT_S = 2.0

_closing: set[asyncio.Task[None]] = set()
"""Holds tasks that are not awaited, so that they are not collected while they run."""


class PlayerOutbox:
    """The sending side of one player's websocket."""

    def __init__(self, websocket: ServerConnection) -> None:
        self._websocket = websocket
        self.closed = False
        """True once it is being closed; nothing is sent any more."""

    def send(self, message: Message) -> None:
        """Hand a message to the websocket, or close it when the player has fallen too far behind."""
        if self.closed:
            return
        broadcast([self._websocket], encode(message))
        if self._websocket.transport.get_write_buffer_size() > MAX_BUFFERED:
            self.close(CloseCode.SLOW_READER, "slow reader")

    def close(self, code: int, reason: str) -> None:
        """Begin to close; what was sent before goes out first where the player reads."""
        if self.closed:
            return
        self.closed = True
        task = asyncio.create_task(self._close(code, reason))
        _closing.add(task)
        task.add_done_callback(_closing.discard)

    async def wait_closed(self, *, within_s: float) -> None:
        """Wait for the end of the connection, at most `within_s`."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._websocket.wait_closed(), within_s)

    async def _close(self, code: int, reason: str) -> None:
        try:
            await asyncio.wait_for(self._websocket.close(code, reason), CLOSE_TIMEOUT_S)
        except TimeoutError:
            self._websocket.transport.abort()
