"""The HTTP side that every program has: `/healthz`, `/readyz`, `/metrics` on an aiohttp application, JSON answers."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest

from shared.errors import BadToken
from shared.tokens import OperatorClaims, verify

MAX_BODY = 64 * 1024
"""Largest request body a program of ours needs [bytes]."""
COMPRESSED_FROM = 4096
"""Answers from this size are compressed for clients that take it [bytes]: rows of a fleet are much alike."""
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

    app = web.Application(client_max_size=MAX_BODY)
    app.add_routes([web.get("/healthz", healthz), web.get("/readyz", readyz), web.get("/metrics", metrics)])
    return app


async def serve(app: web.Application, *, host: str, port: int) -> web.AppRunner:
    """Serve `app`; the caller calls `cleanup()` on what is returned. Raises `OSError` when the port is taken."""
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=2.0)
    await runner.setup()
    await web.TCPSite(runner, host, port).start()
    return runner
