"""The player's side of the router: one coroutine per websocket, from its first message to its last."""

from __future__ import annotations

import asyncio
import logging

from websockets.exceptions import ConnectionClosed

from router.core.sessions import Session
from router.shell.requests import Requests
from router.shell.session_starter import SessionStarter
from router.shell.sessions import Sessions
from router.shell.state import RouterState
from router.shell.wire import WireConnection, ws_frame
from shared.errors import BadInput, BadMessage, BadToken, UnknownMessage
from shared.messages.codes import CloseCode
from shared.messages.player import Failed, Join, Resume, ToRouter, to_router

FIRST_MESSAGE_WITHIN_S = 5.0
log = logging.getLogger("router")


class Players:
    """Serves player websockets."""

    def __init__(self, state: RouterState, sessions: Sessions, starter: SessionStarter, requests: Requests) -> None:
        self._state = state
        self._sessions = sessions
        self._starter = starter
        self._requests = requests

    async def serve(self, wire: WireConnection) -> None:
        """The whole life of one player websocket."""
        session: Session | None = None
        try:
            session = wire.session = await self._arrive(wire)
            while session is not None and wire.ended is None:
                await self._one(session, wire, await wire.recv())
        except ConnectionClosed:
            pass
        finally:
            if wire.ended is not None:
                self._state.metrics.closed.labels("player", str(int(wire.ended))).inc()
            if session is not None:
                self._sessions.wire_lost(session, wire)

    async def _arrive(self, wire: WireConnection) -> Session | None:
        """The session that the first message begins or resumes; None when the websocket is being closed."""
        try:
            async with asyncio.timeout(FIRST_MESSAGE_WITHIN_S):
                message = await self._first(wire)
        except TimeoutError:
            wire.end(CloseCode.NO_JOIN, "no join or resume in time")
            return None
        try:
            if message is not None:
                return await self._starter.begin(wire, message)
        except BadToken as error:
            self._refuse(wire, error)
            wire.end(CloseCode.BAD_TOKEN, error.reason)
        return None

    async def _first(self, wire: WireConnection) -> Join | Resume | None:
        while wire.ended is None:
            message = self._read(wire, await wire.recv())
            if isinstance(message, Join | Resume):
                return message
            if message is not None:
                wire.end(CloseCode.NO_JOIN, "the first message must be join or resume")
        return None

    async def _one(self, session: Session, wire: WireConnection, frame: str | bytes) -> None:
        message = self._read(wire, frame)
        if message is None:
            return
        if isinstance(message, Join | Resume):
            self._refuse(wire, BadMessage(direction="player-to-router", detail="the session has begun already"))
            wire.end(CloseCode.BAD_MESSAGE, "already joined")
            return
        await self._requests.handle(session, wire, message)

    def _read(self, wire: WireConnection, frame: str | bytes) -> ToRouter | None:
        """The message; None when it is to be skipped or the websocket is being closed because of it."""
        try:
            message = to_router.read(frame)
        except UnknownMessage as error:
            self._count(error)
            return None
        except BadMessage as error:
            self._refuse(wire, error)
            wire.end(CloseCode.BAD_MESSAGE, "not a message")
            return None
        self._state.metrics.messages.labels("player", str(message.__struct_config__.tag)).inc()
        return message

    def _refuse(self, wire: WireConnection, error: BadInput) -> None:
        self._count(error)
        wire.put(ws_frame(Failed(code=error.code, message=str(error))))

    def _count(self, error: BadInput) -> None:
        self._state.metrics.refused.labels("player", error.code).inc()
        self._state.trouble.warning(f"player-{error.code}", str(error))
