"""The front of a websocket port: each connection has a seat, which it keeps once it has shown a good token."""

from __future__ import annotations

import asyncio
import http
from collections.abc import Callable, Iterable
from typing import Any, cast

from websockets.asyncio.server import ServerConnection
from websockets.frames import Close, Frame, Opcode
from websockets.http11 import Request, Response
from websockets.protocol import State

from shared.front.metrics import FrontMetrics
from shared.front.origin import allows
from shared.front.port import NO_SEAT, RETRY_AFTER_S, Doorkeeper
from shared.front.seats import SeatBounds
from shared.front.settings import FrontSettings
from shared.host.files import file_shares
from shared.messages.codes import CloseCode

WAITING = 500
"""Connections that may have shown no token yet, at least. Each has 5 s for it, and takes a fifth of one over a slow
network: enough for two thousand joins a second."""
WAITING_SHARE = 0.1
"""Of all that a port may have, when that is more: another router's players come within seconds when it dies."""
WAITING_AN_ADDRESS = 200
"""Of one address: an office of a thousand people who come back within the 3 s over which a router sends them away."""
MAX_FORWARDED_LINES = 4


class WebsocketFront:
    """Seats the connections of one websocket server."""

    def __init__(
        self,
        *,
        connection: type[ServerConnection],
        most: int,
        metrics: FrontMetrics,
        settings: FrontSettings,
        hosts: Callable[[], Iterable[str]] | None = None,
    ) -> None:
        """`most`: connections with a token, those of other servers included. `hosts`: whose pages may connect, besides
        those of the host that was asked and the origins that are listed; None: all may where none is listed."""
        shares = file_shares()
        waiting = max(WAITING, int(most * WAITING_SHARE))
        self._connection = connection
        self._listed = settings.allowed_origins
        self._hosts = hosts
        self._keeper = Doorkeeper(
            "players",
            SeatBounds(
                most=min(most + waiting, shares.players),
                per_address=settings.max_per_address,
                waiting=waiting,
                waiting_per_address=min(WAITING_AN_ADDRESS, settings.max_per_address),
                narrow=shares.narrow,
            ),
            settings,
            metrics,
            hint=shares.hint(most + waiting > shares.players),
            goodbye=_goodbye,
        )

    def create_connection(self, *args: Any, **settings: Any) -> ServerConnection:
        """Give it to `serve` as `create_connection`."""
        door = self._keeper.door(lambda: self._connection(*args, **settings))
        return cast(ServerConnection, door)  # the library hands it to the loop, which wants a protocol

    def refusal(self, connection: ServerConnection, request: Request) -> Response | None:
        """503 for a connection without a seat of its own, 403 for a page that may not; for `process_request`."""
        door = self._keeper.at(connection.transport)
        if door is None or door.seat is None:
            return None
        lines = request.headers.get_all("X-Forwarded-For")[-MAX_FORWARDED_LINES:]
        forwarded = ",".join(lines) if lines else None
        if door.seat.narrow or not self._keeper.forwarded(door, forwarded):
            no = connection.respond(http.HTTPStatus.SERVICE_UNAVAILABLE, "too many connections; try again\n")
            no.headers["Retry-After"] = str(RETRY_AFTER_S)
            return no
        return self._wrong_origin(connection, request)

    def _wrong_origin(self, connection: ServerConnection, request: Request) -> Response | None:
        origins = request.headers.get_all("Origin")
        if not origins or (self._hosts is None and not self._listed):
            return None
        hosts = [*request.headers.get_all("Host"), *(self._hosts() if self._hosts is not None else ())]
        if len(origins) == 1 and allows(origins[0], listed=self._listed, hosts=hosts):
            return None
        self._keeper.wrong_origin(origins[0])
        return connection.respond(
            http.HTTPStatus.FORBIDDEN,
            "pages of this origin may not connect: the operator lists it in allowed_origins\n",
        )

    def let_in(self, connection: ServerConnection) -> None:
        """It has shown a good token: it keeps its seat."""
        door = self._keeper.at(connection.transport)
        if door is not None:
            door.hold()


def _goodbye(inner: asyncio.Protocol) -> bytes:
    """A typed close after the handshake, 503 before."""
    assert isinstance(inner, ServerConnection)
    if inner.protocol.state is not State.OPEN:
        return NO_SEAT
    close = Close(CloseCode.NO_JOIN, "another connection needs the seat: send the first message at once")
    return bytes(Frame(Opcode.CLOSE, close.serialize()).serialize(mask=False, extensions=[]))
