"""The HTTP side that every program has: `/healthz`, `/readyz`, `/metrics` on an aiohttp application, JSON answers.

Its port bounds what strangers may hold of it (`shared.front`), and health and metrics are answered when all is taken.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest

from shared.errors import BadToken
from shared.front.metrics import FrontMetrics
from shared.front.port import Doorkeeper
from shared.front.seats import SeatBounds
from shared.front.settings import DEFAULT_FRONT, FrontSettings
from shared.host.files import MOST_HTTP, file_shares
from shared.patience import patient_timeout
from shared.tokens import OperatorClaims, verify

MAX_BODY = 64 * 1024
"""Largest request body a program of ours needs [bytes]."""
COMPRESSED_FROM = 4096
"""Answers from this size are compressed for clients that take it [bytes]: rows of a fleet are much alike."""
HEADERS_WITHIN_S = 10.0
"""From a connection, or the first byte of a further request, to the end of its headers."""
BODY_WITHIN_S = 10.0
"""From the headers to the end of the body: 64 KiB on the worst of phones."""
IDLE_S = 75.0
"""A connection without a request is closed. Longer than reverse proxies keep theirs (60 s), which would else use one
that is being closed."""
LINGER_S = 1.0
"""How long the rest of a request is read that is refused."""
BACKLOG = 1024
AN_ADDRESS_S_SHARE = 0.5
"""Most of these that one address may have."""
ALWAYS = frozenset({"/healthz", "/readyz", "/metrics"})
"""What is answered when all connections are taken."""
GET_TOKEN = "make one with 'sluice token NAME --operator' and enter it on the fleet page"
NOT_KEPT = {"Cache-Control": "no-store"}
"""Every answer is of its moment."""


def answer(body: Any, *, status: int = 200) -> web.Response:
    """`body` as JSON; bytes are JSON already. What is no finite number is null."""
    raw = body if isinstance(body, bytes) else msgspec.json.encode(body)
    response = web.Response(body=raw, status=status, content_type="application/json", headers=NOT_KEPT)
    if len(raw) >= COMPRESSED_FROM:
        response.enable_compression()
    return response


class ErrorAnswer(web.HTTPException):
    """An answer that says no, as JSON: raise it from a handler."""

    def __init__(self, status: int, body: Mapping[str, Any], *, headers: Mapping[str, str] | None = None) -> None:
        self.status_code = status
        text = msgspec.json.encode(body).decode()
        super().__init__(headers={**NOT_KEPT, **(headers or {})}, text=text, content_type="application/json")


def refusal(status: int, error: str, fix: str) -> ErrorAnswer:
    """An answer that says no, and what to do about it."""
    headers = {"Retry-After": "2"} if status in (429, 503) else {}
    if status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="sluice"'
    return ErrorAnswer(status, {"error": error, "fix": fix}, headers=headers)


def operator_of(request: web.Request, *, secret: str, now_at: float) -> str:
    """The name in the operator's token that a request carries. Raises `BadToken`; `no_operator` answers that."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token:
        raise BadToken(reason="missing")
    return verify(OperatorClaims, token.strip(), secret=secret, now_at=now_at).operator


def no_operator(error: BadToken) -> ErrorAnswer:
    """401, or 403 for a token that is good for other things."""
    return refusal(403 if error.reason == "wrong-audience" else 401, f"token-{error.reason}", GET_TOKEN)


def make_app(*, ready: Callable[[], bool], registry: CollectorRegistry) -> web.Application:
    """An application with the three common routes.

    `/healthz` says 200 whenever the event loop answers: it depends on neither Redis nor a cordon (invariant 3).
    `/readyz` says 200 once `ready()` does, 503 before; a cordon changes nothing here either (D2). Its `pid` tells
    a parent on this machine whether its own child answers, or a stranger that has taken the port.
    """

    async def healthz(_: web.Request) -> web.Response:
        return answer({"alive": True})

    async def readyz(_: web.Request) -> web.Response:
        is_ready = ready()
        return answer({"ready": is_ready, "pid": os.getpid()}, status=200 if is_ready else 503)

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=generate_latest(registry), headers={"Content-Type": "text/plain; version=0.0.4"})

    app = web.Application(client_max_size=MAX_BODY, middlewares=[_seated])
    app.add_routes([web.get("/healthz", healthz), web.get("/readyz", readyz), web.get("/metrics", metrics)])
    return app


KEEPER = web.AppKey("keeper", Doorkeeper)


@web.middleware
async def _seated(request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> Any:
    """A connection keeps its seat while its request is answered; one without a seat hears only of health."""
    keeper = request.app.get(KEEPER)
    door = keeper.at(request.transport) if keeper is not None else None
    if keeper is None or door is None:
        return await handler(request)
    narrow = door.seat is not None and door.seat.narrow
    if request.path not in ALWAYS and (narrow or not keeper.forwarded(door, request.headers.get("X-Forwarded-For"))):
        raise _refusal(503, "too-many-connections", "try again in a few seconds, or another address")
    door.hold()
    try:
        await _read_body(request)
        response = await handler(request)
    finally:
        door.rest()
    if narrow:
        response.force_close()
    return response


async def _read_body(request: web.Request) -> None:
    """Read it to the end, so that no handler waits for a peer that stops in the middle."""
    if not request.can_read_body:
        return
    try:
        async with patient_timeout(BODY_WITHIN_S):
            await request.read()
    except TimeoutError:
        raise _refusal(408, "too-slow", f"send the whole body within {BODY_WITHIN_S:.0f} s") from None


def _refusal(status: int, error: str, fix: str) -> ErrorAnswer:
    no = ErrorAnswer(status, {"error": error, "fix": fix}, headers={"Retry-After": "2"} if status == 503 else {})
    no.force_close()
    return no


@dataclass(frozen=True, slots=True)
class HttpPort:
    """An application that is being served."""

    runner: web.AppRunner
    server: asyncio.Server

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.server.sockets[0].getsockname()[1])

    async def cleanup(self) -> None:
        """Stop, after requests that are being answered have had 2 s."""
        self.server.close()
        await self.runner.cleanup()


async def serve(
    app: web.Application,
    *,
    host: str,
    port: int,
    metrics: FrontMetrics | None = None,
    front: FrontSettings = DEFAULT_FRONT,
) -> HttpPort:
    """Serve `app`; the caller calls `cleanup()` on what is returned. Raises `OSError` when the port is taken.

    Without `metrics` its connections are not bounded: for a port that only this host reaches.
    """
    if metrics is not None:
        app[KEEPER] = keeper = _keeper(metrics, front)
    runner = web.AppRunner(
        app, access_log=None, shutdown_timeout=2.0, keepalive_timeout=IDLE_S, lingering_time=LINGER_S
    )
    await runner.setup()
    make = runner.server
    assert make is not None
    server = await asyncio.get_running_loop().create_server(
        (lambda: keeper.door(make)) if metrics is not None else make, host, port, backlog=BACKLOG
    )
    return HttpPort(runner, server)


def _keeper(metrics: FrontMetrics, front: FrontSettings) -> Doorkeeper:
    shares = file_shares()
    most = shares.http
    bounds = SeatBounds(
        most=most,
        per_address=min(front.max_per_address, max(1, int(most * AN_ADDRESS_S_SHARE))),
        waiting=most,
        waiting_per_address=most,
        narrow=shares.narrow,
    )
    return Doorkeeper(
        "http", bounds, front, metrics, hint=shares.hint(shares.http < MOST_HTTP), within_s=HEADERS_WITHIN_S
    )
