"""`GET /api/scaling`: the autoscaler's leader, state and last decisions, read from Redis when somebody asks (A9)."""

from __future__ import annotations

from aiohttp import web

from router.shell.state import RouterState
from shared.errors import StoreUnavailable

MAX_RECORDS = 1000
DEFAULT_RECORDS = 20


class ScalingApi:
    """The one handler."""

    def __init__(self, state: RouterState) -> None:
        self._state = state

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
            seen = await self._state.need_store("read_scaling").read_scaling(last)
        except StoreUnavailable as error:
            return _answer({"error": error.code}, status=503)
        return _answer(seen.answer())


def _answer(body: dict[str, object], *, status: int = 200) -> web.Response:
    return web.json_response(body, status=status, headers={"Cache-Control": "no-store"})
