"""The websocket server: players on `/player`, SFUs on `/sfu`, one port."""

from __future__ import annotations

import http
import logging
import socket
from urllib.parse import urlsplit

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

from router.shell.liveness import Liveness
from router.shell.players import Players
from router.shell.sfu_links import MAX_LINKS, SfuLinks
from router.shell.state import RouterState
from router.shell.wire import CLOSE_TIMEOUT_S, WireConnection
from shared.front.websocket import WebsocketFront

MAX_FRAME = 64 * 1024
"""Longest message that is read [bytes]; docs/protocol.md."""
OPEN_TIMEOUT_S = 10.0
BACKLOG = 1024
"""Connections that may wait to be accepted: a router's players come all at once when another router dies."""
KERNEL_BUFFER = 64 * 1024
"""What the kernel may hold for one reader [bytes, doubled by Linux]; `send_buffer_kib` is the bound that counts."""
_READ = Request("/", Headers())
"""Stands in for each connection's request once its path has been read."""
_quiet = logging.getLogger("websockets.server")


def _listening(host: str, port: int) -> socket.socket:
    """A listening socket; connections inherit its bound on what the kernel buffers. Raises `OSError`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.create_server((host, port), family=family, backlog=BACKLOG)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, KERNEL_BUFFER)
    return listening


class WsServer:
    """Accepts connections and hands each to the part that serves it."""

    def __init__(self, state: RouterState, *, players: Players, links: SfuLinks, liveness: Liveness) -> None:
        self._state = state
        self._players = players
        self._links = links
        self._liveness = liveness
        self._server: Server | None = None
        self._inside = 0
        """Players whose token was good."""
        config = state.config

        class Connection(WireConnection):
            send_buffer_bytes = config.send_buffer_kib * 1024
            clock = staticmethod(lambda: state.mono())
            on_let_in = staticmethod(self._let_in)

        self._front = WebsocketFront(
            connection=Connection,
            most=config.max_players + MAX_LINKS,
            metrics=state.metrics.front,
            settings=config.front,
            hosts=self._hosts,
        )

    async def start(self) -> int:
        """Listen; the port. Raises `OSError` when it is taken."""
        config = self._state.config
        self._server = await serve(
            self._serve,
            sock=_listening(config.host, config.ws_port),
            process_request=self._route,
            create_connection=self._front.create_connection,  # type: ignore[arg-type]  # any callable that makes one
            compression=None,
            max_size=MAX_FRAME,
            max_queue=16,
            ping_interval=None,
            open_timeout=OPEN_TIMEOUT_S,
            close_timeout=CLOSE_TIMEOUT_S,
            server_header=None,
            logger=_quiet,
        )
        return int(next(iter(self._server.sockets)).getsockname()[1])

    async def stop(self) -> None:
        """Close what is still open."""
        if self._server is not None:
            self._server.close(reason="router is closing")
            await self._server.wait_closed()

    def _route(self, connection: ServerConnection, request: Request) -> Response | None:
        path = urlsplit(request.path).path
        if path not in ("/player", "/sfu"):
            return connection.respond(http.HTTPStatus.NOT_FOUND, "players: /player, SFUs: /sfu\n")
        full = path == "/player" and self._inside >= self._state.config.max_players
        if self._state.closing or full:
            return connection.respond(http.HTTPStatus.SERVICE_UNAVAILABLE, "try another router\n")
        assert isinstance(connection, WireConnection)
        connection.path = path
        return self._front.refusal(connection, request)

    def _hosts(self) -> list[str]:
        """Pages come from any router's HTTP port, and go on to any router."""
        state = self._state
        return [state.announced_http, state.announced_ws, *(record.http for record in state.routers)]

    def _let_in(self, connection: WireConnection) -> None:
        self._front.let_in(connection)
        self._inside += connection.path == "/player"

    async def _serve(self, connection: ServerConnection) -> None:
        assert isinstance(connection, WireConnection)
        connection.request, connection.response = _READ, None  # a KiB or two that is not needed any more
        wires = self._liveness.players if connection.path == "/player" else self._liveness.sfus
        wires.add(connection)
        try:
            serving = self._players if connection.path == "/player" else self._links
            await serving.serve(connection)
        finally:
            wires.discard(connection)
            self._inside -= connection.inside and connection.path == "/player"
