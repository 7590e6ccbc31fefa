"""The SFU's HTTP side: health, metrics, and read-only JSON of its state and its players."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiohttp import web

from shared.http import answer, make_app
from shared.records import every_field

if TYPE_CHECKING:
    from sfu.shell.program import Program


def make_api(program: Program) -> web.Application:
    """The application. Neither health nor readiness looks at the drain (D2, invariant 3)."""

    async def state(_: web.Request) -> web.Response:
        return answer(every_field(program.state))

    async def players(_: web.Request) -> web.Response:
        return answer(players_view(program))

    app = make_app(ready=lambda: program.ready, registry=program.registry)
    app.add_routes([web.get("/api/state", state), web.get("/api/players", players)])
    return app


def players_view(program: Program) -> dict[str, Any]:
    """Who is here, and with what (D12)."""
    now = program.clock()
    return {
        "sfu": program.config.sfu,
        "links": program.links.urls,
        "reachable": program.warm_up.reachable,
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
            for player in program.hub.players.values()
        ],
    }
