"""How long an SFU's cordon takes to reach the last of ten thousand players, and what memory a player costs a router."""

from __future__ import annotations

import asyncio
import gc
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass

import msgspec
from cyclopts import Parameter

from bench.stats import percentile, resident_bytes
from client_sim.shell.idle_swarm import IdleSwarm
from localfleet.errors import FleetFailed
from localfleet.fleet import Fleet, FleetSpec
from localfleet.program import flags
from shared.bounds import check_numbers
from shared.errors import BadSetting
from shared.host.child import python
from shared.host.files import raise_open_files

P99_BOUND_MS = 500.0
MEMORY_BOUND_KIB = 25.0
TOLD_WITHIN_S = 60.0
STAYER_WITHIN_S = 30.0
QUIET_S, QUIET_WITHIN_S = 2.0, 60.0
"""Idle players are what is measured: the echo of the last joins has to die away first."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True, slots=True)
class NotifySettings:
    """How big."""

    players: int = 10_000
    """Idle player websockets."""
    routers: int = 2
    """Routers they are spread over."""
    links: int = 2
    """Routers the SFU is linked to: those tell their players directly, the others learn it through Redis."""
    joins_per_s: float = 1000.0
    """Players that join a second."""

    def check(self) -> None:
        """Raises `BadSetting`."""
        check_numbers(self, "players", "routers", "links", least=1, flags=True)
        check_numbers(self, "joins_per_s", over=0, flags=True)


class NotifyReport(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured."""

    players: int
    told: int
    p50_ms: float
    p99_ms: float
    max_ms: float
    """Last player told."""
    router_kib_per_player: list[float]
    """Growth of each router's resident memory while players joined, by player [KiB]."""
    routers: int
    links: int
    p99_bound_ms: float
    memory_bound_kib: float
    passed: bool


async def notify(settings: NotifySettings, *, say: Callable[[str], None]) -> NotifyReport:
    """Fill two routers, cordon the SFU that every room uses, and time each player's `cordoned-sfu`."""
    settings.check()
    wanted, most = settings.players + 1000, raise_open_files()
    if 0 <= most < wanted:
        raise BadSetting(setting="--players", detail=f"needs {wanted} open files, but the hard limit is {most}")
    spec = FleetSpec(routers=settings.routers, sfus=1, links=settings.links, fleet="bench")
    async with Fleet(spec, say=say) as fleet:
        (sfu,) = fleet.sfus
        await _keep_from_ending(fleet)
        routers = [program.child.pid for program in fleet.routers.values()]
        before = [resident_bytes(pid) for pid in routers]
        swarm = IdleSwarm(
            routers=fleet.router_urls(),
            secret=fleet.secret,
            players=settings.players,
            joins_per_s=settings.joins_per_s,
        )
        try:
            await swarm.fill(progress=lambda joined: None if joined % 2000 else say(f"{joined} players"))
            grown = [resident_bytes(pid) - was for pid, was in zip(routers, before, strict=True)]
            if not await swarm.wait_quiet(for_s=QUIET_S, within_s=QUIET_WITHIN_S):
                say("the players never became idle; what follows competes with their joins")
            gc.collect()
            gc.freeze()  # or a collection that walks ten thousand connections would be taken for a slow router
            say(f"SIGTERM to {sfu}")
            began = fleet.signal_sfu(sfu, signal.SIGTERM)
            told = await swarm.wait_told(sfu, count=settings.players, within_s=TOLD_WITHIN_S)
        finally:
            await swarm.close()
    return _report(settings, [(at - began) * 1000 for at in told], grown)


async def _keep_from_ending(fleet: Fleet) -> None:
    """One player with media that stays: an SFU without players would end in the same moment."""
    arguments = flags(routers=fleet.router_urls(), room="stayer", bots=1, video=False, behaviour="0s conversation")
    await fleet.start_other("stayer", python("client_sim", *arguments))
    deadline = time.monotonic() + STAYER_WITHIN_S
    while not ((await fleet.sfu_states()) or {}).get(next(iter(fleet.sfus)), {}).get("players"):
        if time.monotonic() > deadline:
            raise FleetFailed(program="stayer", detail="did not join", log=fleet.others["stayer"].tail())
        await asyncio.sleep(0.1)


def _report(settings: NotifySettings, times_ms: list[float], grown: list[int]) -> NotifyReport:
    share = settings.players / settings.routers
    kib = [round(size / 1024 / share, 2) for size in grown]
    figures = [percentile(times_ms, share) if times_ms else float("inf") for share in (0.5, 0.99, 1.0)]
    p50, p99, last = (round(figure, 1) for figure in figures)
    everybody = len(times_ms) == settings.players
    return NotifyReport(
        players=settings.players,
        told=len(times_ms),
        p50_ms=p50,
        p99_ms=p99,
        max_ms=last,
        router_kib_per_player=kib,
        routers=settings.routers,
        links=settings.links,
        p99_bound_ms=P99_BOUND_MS,
        memory_bound_kib=MEMORY_BOUND_KIB,
        passed=everybody and p99 < P99_BOUND_MS and max(kib) < MEMORY_BOUND_KIB,
    )
