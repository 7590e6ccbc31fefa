"""Who may read the API: everyone where `api_open` is set, else those with an operator's token (D12).

Answers name players, rooms and the reasons people gave, and the same port serves players' pages: they are not for all.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from aiohttp import hdrs, web

from router.shell.admin import Admin

FOR_ALL = frozenset({"/api/routers", "/api/operator"})
"""What players' pages need to find another router, and what asks for a token on its own."""
ORIGINS = {"Access-Control-Allow-Origin": "*"}
"""Pages of any origin may read: the fleet page asks every router. Where the API is not open they need the token."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Gate:
    """Stands before the reading half of the API. Commands ask for their token themselves, dev tokens have a setting."""

    def __init__(self, admin: Admin, *, is_open: bool) -> None:
        self._admin = admin
        self._open = is_open

    @web.middleware
    async def before(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """The answer, or 401 or 403 with what to do."""
        if not request.path.startswith("/api/") or request.method not in (hdrs.METH_GET, hdrs.METH_HEAD):
            return await handler(request)
        if not self._open and request.path not in FOR_ALL:
            self._admin.operator(request, "read")
        response = await handler(request)
        if request.path != "/api/operator":
            response.headers.update(ORIGINS)
        return response

    def add_to(self, app: web.Application) -> None:
        """Answer the preflight of browsers: whether a page of another origin may send a token with its request.

        Only for what is read. No path of a command says yes: a page elsewhere can't send one in an operator's name.
        """
        for resource in list(app.router.resources()):
            is_read = any(route.method == hdrs.METH_GET for route in resource)
            if resource.canonical.startswith("/api/") and resource.canonical != "/api/operator" and is_read:
                app.router.add_route(hdrs.METH_OPTIONS, resource.canonical, _preflight)


async def _preflight(_: web.Request) -> web.Response:
    headers = {"Access-Control-Allow-Headers": "authorization", "Access-Control-Max-Age": "600"}
    return web.Response(status=204, headers={**ORIGINS, **headers})
