"""Bots over 3 % loss, 20 ms of jitter and reordering, through a real SFU: what is lost comes again, counters agree."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from client_sim.config import BotsConfig
from client_sim.core.report import BotReport
from client_sim.shell.clip import load
from client_sim.shell.fleet import BotFleet
from player.core.rules import safe_to_move
from tests.fakes.road import Road, fates, open_road
from tests.fakes.sfu_process import until

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(180)]

REPAIRED = 40
"""Packets that retransmissions must have brought, to both bots together."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def road() -> AsyncIterator[Road]:
    async with open_road(seed=5) as opened:
        yield opened


async def test_bots_get_every_lost_packet_of_a_picture_again(road: Road) -> None:
    config = BotsConfig(routers=tuple(road.fleet.router_urls()), secret=road.fleet.secret, bots=2, room="rain", seed=2)
    told: list[str] = []

    def emit(event: str, **_: Any) -> None:
        told.append(event)

    bots = BotFleet(config.check(), clip=load(), rule=safe_to_move, emit=emit)
    running = asyncio.create_task(bots.run())
    try:
        await until(lambda: told.count("hearing") == 4)
        started, before = await road.counters(), reports(bots)
        road.turn_bad()
        await until(lambda: sum(one.counts.repaired for one in reports(bots)) >= REPAIRED)
        counters, after = await road.counters() - started, reports(bots)
    finally:
        bots.stopping.set()
        await running

    came_of = fates(counters)
    assert counters["nacks_received"] == sum(came_of.values()), came_of
    assert came_of["resend-over-budget"] == 0, came_of
    # A bot's clip has a key frame each half second: what was lost just before one is not repaired.
    assert came_of["resend-unknown"] < 0.3 * came_of["resent"], came_of
    assert came_of["resent"] >= REPAIRED
    assert counters["plis_sent"] <= 4
    for was, now in zip(before, after, strict=True):
        assert now.gaps.damaged == 0
        came = now.gaps.video_units - was.gaps.video_units
        assert came > 30
        assert now.gaps.video_missing - was.gaps.video_missing <= 0.1 * came


def reports(bots: BotFleet) -> list[BotReport]:
    return [bot.report(now=time.monotonic()) for bot in bots.bots]
