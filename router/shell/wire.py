"""A websocket of this router: frames go out without waiting, in bounded number; frames in are paced and dated."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, cast

from websockets.asyncio.server import ServerConnection
from websockets.frames import DATA_OPCODES, Frame, Opcode
from websockets.protocol import State

from router.core.sessions import Session
from shared.messages.base import Message, encode
from shared.messages.codes import CloseCode
from shared.rate import TokenBucket

CLOSE_TIMEOUT_S = 3.0
"""How long a peer may take to answer a close."""
MAX_CLOSE_REASON = 123
"""Longest reason that a close frame carries [bytes] (RFC 6455, section 5.5)."""


def ws_frame(message: Message) -> bytes:
    """The message as a websocket text frame; the same bytes for every connection, since a server does not mask."""
    return bytes(Frame(Opcode.TEXT, encode(message).encode()).serialize(mask=False, extensions=[]))


class WireConnection(ServerConnection):
    """A server's websocket that writes synchronously and knows when it last heard of its peer."""

    send_buffer_bytes = 1024 * 1024
    clock = staticmethod(time.monotonic)
    """The router's monotonic clock."""
    on_let_in: Callable[[WireConnection], None] = staticmethod(lambda _: None)
    """What the server does when a connection's token was good."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.heard = self.clock()
        self.path = ""
        self.inside = False
        """Its token was good."""
        self.session: Session | None = None
        """The player's, once it has begun."""
        self.ended: int | None = None
        self.pinged = self.heard
        self.bucket = TokenBucket(now=self.heard)

    def let_in(self) -> None:
        """Its token is good: from now on it keeps its seat (`shared.front`)."""
        if not self.inside:
            self.inside = True
            self.on_let_in(self)

    def data_received(self, data: bytes) -> None:
        """Note the sign of life, then go on."""
        self.heard = self.clock()
        super().data_received(data)

    def process_event(self, event: Any) -> None:
        """Pace all frames that arrive, pings and fragments too; beyond the limit the connection is closed (4005)."""
        if isinstance(event, Frame):
            if not self.bucket.take(now=self.heard):
                self.end(CloseCode.TOO_FAST, "too many messages")
            if self.ended is not None and event.opcode in DATA_OPCODES:
                return
        super().process_event(event)

    @property
    def alive(self) -> bool:
        """Open, and not being closed."""
        return self.ended is None and self.protocol.state is State.OPEN

    def put(self, frame: bytes) -> None:
        """Put a frame of `ws_frame` on the wire. A reader that lets too much pile up is closed (4008)."""
        if not self.alive:
            return
        transport = cast(asyncio.WriteTransport, self.transport)
        transport.write(frame)
        if transport.get_write_buffer_size() > self.send_buffer_bytes:
            self.end(CloseCode.SLOW_READER, "fell behind")

    def end(self, code: int, reason: str) -> None:
        """Close with a typed code, without waiting; a peer that does not answer is cut off after `CLOSE_TIMEOUT_S`."""
        if self.ended is not None:
            return
        self.ended = code
        if self.protocol.state is not State.OPEN:
            self.transport.abort()
            return
        self.protocol.send_close(code, reason.encode()[:MAX_CLOSE_REASON].decode(errors="ignore"))
        self.send_data()
        self.transport.resume_reading()  # messages are dropped from now on, but the peer's close is to be read
        self.loop.call_later(CLOSE_TIMEOUT_S, self.transport.abort)

    def ping_now(self) -> None:
        """Ask for a sign of life; any data counts as an answer."""
        if self.alive:
            self.pinged = self.clock()
            self.protocol.send_ping(b"")
            self.send_data()
