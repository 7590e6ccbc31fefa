"""The HTTP side of a router: health, metrics, API, pages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from aiohttp import web
from aiohttp.typedefs import Middleware

from router.core.directory import NotPlaceable
from router.shell.admin import Admin
from router.shell.api import Api
from router.shell.feed import Feed
from router.shell.links import Links
from router.shell.pages import Pages, web_root
from router.shell.scaling import ScalingApi
from router.shell.state import RouterState
from shared.http import make_app
from shared.records import SfuStatus


@web.middleware
async def cors(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Pages of any origin may read the API, and nothing else."""
    response = await handler(request)
    if request.path.startswith("/api/") and request.method in ("GET", "HEAD"):
        response.headers["Access-Control-Allow-Origin"] = "*"
    return response


def router_app(state: RouterState, links: Links, *, ready: Callable[[], bool]) -> web.Application:
    """The application."""
    app = make_app(ready=ready, registry=state.metrics.registry)
    app.middlewares.append(cors)
    app.middlewares.append(_fresh_gauges(state, links))
    Api(state).add_to(app)
    Feed(state).add_to(app)
    ScalingApi(state).add_to(app)
    Admin(state).add_to(app)
    Pages(web_root()).add_to(app)
    return app


def _fresh_gauges(state: RouterState, links: Links) -> Middleware:
    """Gauges are set when somebody asks for them."""

    @web.middleware
    async def fresh(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        if request.path == "/metrics":
            set_gauges(state, links)
        return await handler(request)

    return fresh


def set_gauges(state: RouterState, links: Links) -> None:
    """Bring the gauges up to date."""
    metrics = state.metrics
    connected = sum(1 for room in state.rooms for session in room.sessions.values() if session.wire is not None)
    metrics.players.labels("connected").set(connected)
    metrics.players.labels("waiting").set(state.rooms.sessions - connected)
    metrics.rooms.set(len(state.rooms))
    metrics.links.set(len(links.ids))
    metrics.in_flight.set(state.assigner.standings.in_flight.joins)
    metrics.failing.set(state.assigner.standings.failing)
    for kind, count in state.store.counts.items():
        metrics.store_trouble.labels(kind).set(count)
    statuses, reasons = dict.fromkeys(SfuStatus, 0), dict.fromkeys(NotPlaceable, 0)
    for view in state.directory.views(now=state.mono()):
        statuses[view.status] += 1
        if view.refused is not None:
            reasons[view.refused] += 1
    for status, count in statuses.items():
        metrics.sfus.labels(status.value).set(count)
    for why, count in reasons.items():
        metrics.not_placeable.labels(why.value).set(count)
