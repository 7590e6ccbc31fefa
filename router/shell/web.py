"""The HTTP side of a router: health, metrics, API, pages."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from aiohttp import web
from aiohttp.typedefs import Middleware

from router.core.directory import NotPlaceable
from router.shell.admin import Admin
from router.shell.api import Api
from router.shell.feed import Feed
from router.shell.gate import Gate
from router.shell.pages import Pages, web_root
from router.shell.readings import AT_ONCE
from router.shell.scaling import ScalingApi
from router.shell.sfu_links import SfuLinks
from router.shell.state import RouterState
from shared.http import make_app
from shared.records import SfuStatus


def router_app(state: RouterState, links: SfuLinks, *, ready: Callable[[], bool]) -> web.Application:
    """The application."""
    app = make_app(ready=ready, registry=state.metrics.registry)
    admin, readers = Admin(state), asyncio.Semaphore(AT_ONCE)
    gate = Gate(admin, is_open=state.config.api_open)
    app.middlewares.append(gate.before)
    app.middlewares.append(_fresh_gauges(state, links))
    Api(state, readers).add_to(app)
    Feed(state).add_to(app)
    ScalingApi(state, readers).add_to(app)
    admin.add_to(app)
    gate.add_to(app)
    Pages(web_root(), framed_by=state.config.front.allowed_origins).add_to(app)
    return app


def _fresh_gauges(state: RouterState, links: SfuLinks) -> Middleware:
    """Gauges are set when they are asked for."""

    @web.middleware
    async def fresh(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        if request.path == "/metrics":
            set_gauges(state, links)
        return await handler(request)

    return fresh


def set_gauges(state: RouterState, links: SfuLinks) -> None:
    """Bring the gauges up to date."""
    metrics = state.metrics
    connected = sum(1 for room in state.rooms for session in room.sessions.values() if session.wire is not None)
    metrics.players.labels("connected").set(connected)
    metrics.players.labels("waiting").set(state.rooms.sessions - connected)
    metrics.without_media.set(state.rooms.without_media)
    metrics.rooms.set(len(state.rooms))
    metrics.links.set(len(links.ids))
    metrics.in_flight.set(state.assigner.standings.in_flight.joins)
    metrics.failing.set(state.assigner.standings.failing)
    for kind, count in state.store.counts.items():
        metrics.store_trouble.labels(kind).set(count)
    statuses, reasons = dict.fromkeys(SfuStatus, 0), dict.fromkeys(NotPlaceable, 0)
    for view in state.directory.views(now=state.mono()):
        statuses[view.status] += 1
        metrics.release(view.state.version)
        if view.refused is not None:
            reasons[view.refused] += 1
    for status, count in statuses.items():
        metrics.sfus.labels(status.value).set(count)
    for why, count in reasons.items():
        metrics.not_placeable.labels(why.value).set(count)
