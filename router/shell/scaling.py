"""`GET /api/scaling`: the autoscaler's leader, state and last decisions, read from Redis when somebody asks (A9)."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from aiohttp import web

from router.shell.readings import Readings
from router.shell.state import RouterState
from shared.errors import StoreUnavailable
from shared.store import Scaling

MAX_RECORDS = 1000
STEPS = (50, MAX_RECORDS)
"""How many are read; of what is read, an answer has as many as were asked for."""
DEFAULT_RECORDS = 20


class ScalingApi:
    """The one handler."""

    def __init__(self, state: RouterState, readers: asyncio.Semaphore) -> None:
        self._state = state
        self._readings = Readings(self._read, clock=lambda: state.mono(), gate=readers)

    def add_to(self, app: web.Application) -> None:
        """Add the route."""
        app.add_routes([web.get("/api/scaling", self._scaling)])

    async def _scaling(self, request: web.Request) -> web.Response:
        """`?last=N` records, newest first; 503 while Redis does not answer."""
        try:
            last = max(0, min(MAX_RECORDS, int(request.query.get("last", DEFAULT_RECORDS))))
        except ValueError:
            return _answer({"error": "last must be a number"}, status=400)
        try:
            seen = await self._readings.of(next(step for step in STEPS if step >= last))
        except StoreUnavailable as error:
            return _answer({"error": error.code}, status=503)
        return _answer(replace(seen, records=seen.records[:last]).answer())

    async def _read(self, last: int) -> Scaling:
        return await self._state.need_store("read_scaling").read_scaling(last)


def _answer(body: dict[str, object], *, status: int = 200) -> web.Response:
    return web.json_response(body, status=status, headers={"Cache-Control": "no-store"})
