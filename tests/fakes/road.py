"""A fleet of one SFU that players reach only through the impairment proxy, perfect until a test makes it bad."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from client_sim.core.impairment import Impairment
from client_sim.shell.impairment import ImpairmentProxy
from localfleet.fleet import Fleet, FleetSpec
from tests.fakes.plane_counters import PlaneCounters, plane_counters

PERFECT = Impairment()
BAD = Impairment(loss=0.03, jitter_s=0.02)
"""3 % loss, 20 ms of jitter, and the reordering that it makes of packets sent closer together than that."""

FATES = ("resent", "resend-repeated", "resend-over-budget", "resend-awaited", "resend-unknown")
"""What can become of a packet that a viewer asks for again: a counter, and reasons of `DropReason`."""


@dataclass(frozen=True)
class Road:
    fleet: Fleet
    proxy: ImpairmentProxy
    sfu_http: str

    async def counters(self) -> PlaneCounters:
        return await plane_counters(self.sfu_http)

    def turn_bad(self) -> None:
        self.proxy.impair(up=BAD, down=BAD)


def fates(counters: PlaneCounters) -> dict[str, int]:
    """What has become of the packets that viewers asked for again."""
    return {name: counters["resent"] if name == "resent" else counters.drops[name] for name in FATES}


@asynccontextmanager
async def open_road(*, seed: int, plane: str = "compiled", tcp: bool = False) -> AsyncIterator[Road]:
    """`tcp`: media may go over TCP as well, past the proxy."""
    proxy = ImpairmentProxy.open(seed=seed)
    flags = ("--announced-udp-port", str(proxy.address[1]), "--plane", plane, "--tcp" if tcp else "--no-tcp")
    try:
        async with Fleet(FleetSpec(routers=1, sfus=1, router_flags=("--dev-tokens",), sfu_flags=flags)) as fleet:
            (sfu,) = fleet.sfus.values()
            bound = re.search(r" udp=(\d+)", sfu.child.tail())
            assert bound is not None
            proxy.target = ("127.0.0.1", int(bound[1]))
            yield Road(fleet, proxy, sfu.http)
    finally:
        proxy.close()
