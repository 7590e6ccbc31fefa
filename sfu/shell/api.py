"""The SFU's HTTP side: health and metrics for all, and read-only JSON of its state and its players for operators."""

from __future__ import annotations

import time
from typing import Any

from aiohttp import web
from prometheus_client import CollectorRegistry

from sfu.shell.parts import SfuParts
from sfu.shell.reporting import Reporting
from sfu.shell.router_link import RouterLinks
from sfu.shell.warm_up import WarmUp
from shared.errors import BadToken
from shared.http import answer, make_app, no_operator, operator_of
from shared.records import every_field


def make_api(
    parts: SfuParts, reports: Reporting, links: RouterLinks, warm_up: WarmUp, *, registry: CollectorRegistry
) -> web.Application:
    """The application. Neither health nor readiness looks at the drain (D2, invariant 3).

    Who talks with whom is for those with an operator's token, as at a router: this port is often the node's own. It is
    asked for on loopback as well, because that is where a proxy in front of this port would come from.
    """

    def need_operator(request: web.Request) -> None:
        try:
            operator_of(request, secret=parts.config.secret, now_at=time.time())
        except BadToken as error:
            parts.trouble("operator-token")
            raise no_operator(error) from None

    async def state(request: web.Request) -> web.Response:
        need_operator(request)
        return answer(every_field(reports.state))

    async def players(request: web.Request) -> web.Response:
        need_operator(request)
        return answer(players_view(parts, links, warm_up))

    app = make_app(ready=lambda: reports.healthy, registry=registry)
    app.add_routes([web.get("/api/state", state), web.get("/api/players", players)])
    return app


def players_view(parts: SfuParts, links: RouterLinks, warm_up: WarmUp) -> dict[str, Any]:
    """Who is here, and with what (D12)."""
    now = parts.clock()
    return {
        "sfu": parts.config.sfu,
        "links": links.urls,
        "reachable": warm_up.reachable,
        "players": [
            {
                "player": player.id,
                "identity": player.claims.identity,
                "name": player.claims.name,
                "room": player.room.name,
                "since_s": round(now - player.entered, 1),
                "connected": player.outbox is not None,
                "visits": not player.claims.publish,
                "publications": [
                    {
                        "publication": name,
                        "kind": present.track.format.kind,
                        "codec": present.track.format.name,
                        "generation": present.track.generation,
                        "flowing": present.flowing,
                        "consumers": len(player.room.gets.get(name, ())),
                    }
                    for name, present in player.publications.items()
                ],
                "subscribed": sorted(player.subscribing.consumers) if player.subscribing else [],
            }
            for player in parts.players.values()
        ],
    }
