"""Bots as a child process, and the flags that say which players they are."""

from __future__ import annotations

from localfleet.fleet import Fleet
from localfleet.program import flags
from shared.host.child import Child, python


async def start_bots(fleet: Fleet, *, name: str = "bots", bots: int, room: str) -> Child:
    """Bots that join one room and stay until they are stopped."""
    arguments = flags(routers=fleet.router_urls(), room=room, bots=bots)
    return await fleet.start_other(name, python("client_sim", *arguments))
