"""A rehearsal from start to report: a private fleet, a crowd of bots, a play."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict

from localfleet.config import FleetSize
from localfleet.errors import FleetFailed
from localfleet.fleet import Fleet, FleetSpec
from operators.shell.operations import open_store
from operators.shell.target import Target
from rehearse.config import UNDISTURBED, CrowdSize, RollRehearsed
from rehearse.core.rehearsal import RehearsalKind, RehearsalReport, Scale, summarize
from rehearse.shell.crowd import Crowd
from rehearse.shell.plays import PLAYS
from rehearse.shell.stage import Stage
from rehearse.shell.stall import StallMeter
from shared.errors import BadSetting
from shared.host.ports import check_host
from shared.store.server_name import server_name

CALM_S = 2.0
"""After everybody hears everybody, before the measuring begins: joining is work, and not what is measured."""
AFTERMATH_S = 2.0
"""After the last step, still measured: a gap may come late."""
ALL_HEAR_WITHIN_S = 90.0


async def rehearse(
    kind: RehearsalKind,
    *,
    size: FleetSize,
    crowd: CrowdSize,
    say: Callable[[str], None],
    roll: RollRehearsed = UNDISTURBED,
) -> RehearsalReport:
    """Run one rehearsal. Raises `BadSetting` for sizes that make no sense, `FleetFailed` when a program fails."""
    check(size, crowd)
    began = time.monotonic()
    async with staged(kind, size=size, crowd=crowd, say=say) as stage:
        stage.roll = roll
        server = await server_name(stage.fleet.redis_url)
        async with StallMeter() as stall:
            await PLAYS[kind](stage)
            await asyncio.sleep(AFTERMATH_S)
        gaps, failures = await stage.crowd.measured()
    return summarize(
        kind,
        stage.endings,
        gaps=gaps,
        failures=failures,
        scale=Scale(**asdict(crowd), sfus=size.sfus, routers=size.routers, redis_server=server),
        stall_ms=stall.worst_ms,
        took_s=time.monotonic() - began,
        moves=stage.view.most_moves,
        roll=stage.roll_troubles,
        interruptions=stage.interruptions,
    )


@asynccontextmanager
async def staged(
    kind: RehearsalKind, *, size: FleetSize, crowd: CrowdSize, say: Callable[[str], None] = lambda _: None
) -> AsyncIterator[Stage]:
    """A private fleet whose bots all hear each other and have begun to measure. Raises `FleetFailed`."""
    spec = FleetSpec(
        **asdict(size),
        fleet=f"rehearsal-{secrets.token_hex(4)}",
        # One link per SFU, so that some players are told by the router that is linked and some through Redis.
        links=1,
    )
    async with (
        Fleet(spec, say=say) as fleet,
        open_store(Target(redis=fleet.redis_url, fleet=spec.fleet)) as store,
        Crowd(fleet, crowd) as players,
    ):
        stage = Stage(kind=kind, fleet=fleet, crowd=players, store=store, say=say)
        await assemble(stage, crowd)
        yield stage


async def assemble(stage: Stage, crowd: CrowdSize) -> None:
    """Wait until everybody hears everybody, then begin to measure. Raises `FleetFailed`."""
    stage.say(f"{crowd.bots} bots join {crowd.rooms} rooms")
    if not await stage.until(lambda: stage.view.all_hear(crowd.bots), within_s=ALL_HEAR_WITHIN_S):
        detail = f"do not all hear each other after {ALL_HEAR_WITHIN_S:.0f} s: {stage.view.missing(crowd.bots)}"
        raise FleetFailed(program="bots", detail=detail, log=stage.crowd.tail())
    stage.say("everybody hears everybody")
    await asyncio.sleep(CALM_S)
    await stage.crowd.begin_measuring()


def check(size: FleetSize, crowd: CrowdSize) -> None:
    """Raise `BadSetting` for what can't be rehearsed."""
    check_host(size.host)
    if size.routers < 1:
        raise BadSetting(setting="--routers", detail="must be at least 1")
    if size.sfus < 2:
        raise BadSetting(setting="--sfus", detail="must be at least 2: players need somewhere to go")
    if crowd.bots < 2:
        raise BadSetting(setting="--bots", detail="must be at least 2: each bot needs another one to hear")
    if not 1 <= crowd.rooms <= crowd.bots // 2:
        most = crowd.bots // 2
        detail = f"must be 1 to {most}, so that each has two or more of the {crowd.bots} --bots"
        raise BadSetting(setting="--rooms", detail=detail)
