"""Every way of a private fleet, each of which can be cut or frozen."""

from __future__ import annotations

import asyncio
from typing import TypeVar

from client_sim.core.impairment import Impairment
from client_sim.shell.impairment import ImpairmentProxy
from rehearse.shell.chaos.tcp_road import TcpRoad

LOST = Impairment(loss=1.0)
GOOD = Impairment()
Key = TypeVar("Key")


class ChaosRoads:
    """Give it to a `Fleet` as its `roads`; end it with `close`. Ports that programs are told last as long as it."""

    def __init__(self) -> None:
        self.routers: dict[str, TcpRoad] = {}
        """Players to a router."""
        self.links: dict[tuple[str, str], TcpRoad] = {}
        """An SFU to a router, by both names."""
        self.signalling: dict[str, TcpRoad] = {}
        """Players to an SFU."""
        self.datagrams: dict[str, ImpairmentProxy] = {}

    async def to_router(self, router: str, port: int) -> int:
        for (_, linked), road in self.links.items():
            if linked == router:
                road.target = port
        return (await _at(self.routers, router, port)).port

    async def link(self, sfu: str, router: str, port: int) -> int:
        return (await _at(self.links, (sfu, router), port)).port

    async def to_sfu(self, sfu: str, port: int) -> int:
        return (await _at(self.signalling, sfu, port)).port

    def media(self, sfu: str, port: int) -> int:
        if sfu not in self.datagrams:
            self.datagrams[sfu] = ImpairmentProxy.open(seed=1)
        self.datagrams[sfu].target = ("127.0.0.1", port)
        return self.datagrams[sfu].address[1]

    def links_of(self, sfu: str) -> list[TcpRoad]:
        """The links of one SFU, or with `*` of all."""
        return [road for (owner, _), road in self.links.items() if sfu in (owner, "*")]

    def lose_datagrams(self, sfu: str, *, lost: bool) -> None:
        """Lose all of an SFU's datagrams, or none."""
        now = LOST if lost else GOOD
        self.datagrams[sfu].impair(up=now, down=now)

    async def close(self) -> None:
        """End all."""
        roads = [*self.routers.values(), *self.links.values(), *self.signalling.values()]
        await asyncio.gather(*(road.close() for road in roads))
        for proxy in self.datagrams.values():
            proxy.close()


async def _at(roads: dict[Key, TcpRoad], key: Key, port: int) -> TcpRoad:
    if key not in roads:
        roads[key] = await TcpRoad.open(port)
    roads[key].target = port
    return roads[key]
