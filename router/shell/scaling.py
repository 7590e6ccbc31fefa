"""`GET /api/scaling`: the autoscaler's leader, state and last decisions, read from Redis when asked for (A9)."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from aiohttp import web

from router.shell.readings import NO_NUMBER, Readings, rows_asked, rows_read
from router.shell.state import RouterState
from shared.errors import StoreUnavailable
from shared.http import answer
from shared.store.answers import Scaling

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
        last = rows_asked(request.query, default=DEFAULT_RECORDS)
        if last is None:
            return answer(NO_NUMBER, status=400)
        try:
            seen = await self._readings.of(rows_read(last))
        except StoreUnavailable as error:
            return answer({"error": error.code}, status=503)
        return answer(replace(seen, records=seen.records[:last]).answer())

    async def _read(self, last: int) -> Scaling:
        return await self._state.need_store("read_scaling").read_scaling(last)
