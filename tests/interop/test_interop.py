"""libwebrtc outside a browser and GStreamer's webrtcbin as publisher and as subscriber, through a real router and SFU.

Each meets a bot, and they meet each other; everybody publishes and subscribes. At first the network is perfect, then it
loses 3 % and reorders: both stacks must get their losses repaired in both roles.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import pytest_asyncio

from client_sim.config import BotsConfig
from client_sim.shell.bot import Bot
from client_sim.shell.clip import load
from client_sim.shell.fleet import BotFleet
from player.core.rules import safe_to_move
from tests.fakes.needed import need_installed
from tests.fakes.plane_counters import PlaneCounters
from tests.fakes.road import PERFECT, Road, fates, open_road
from tests.fakes.sfu_process import until
from tests.interop.foreign import WITHIN_S, ForeignPlayer
from tests.interop.peer import GSTREAMER, WRTC, Stack, lacking

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(180)]

TRACKS = 2
"""What each player publishes: sound and a picture."""
FRAMES = 30
SOUNDS = 100
"""Decoded pieces of sound, of 10 or 20 ms each."""
HARMLESS = {"probe", "stun-indication", "resend-unknown", "resend-repeated"}
"""Drops that a healthy call has: libwebrtc probes the bandwidth with empty packets, libnice keeps paths open, and
GStreamer asks for packets that come later than it expects, also when it is the machine that is late."""
AUDIBLE = 10
"""Of them; a bot beeps for a tenth of each second, the others hum."""
REPAIRS = {"resend-awaited", "duplicate"}
"""What else happens on a bad network: viewers miss what we miss ourselves, packets come late and by RTX too."""
PROFILE = "AES_CM_128_HMAC_SHA1_80"


def needs(*stacks: Stack) -> None:
    """Skip with a word on how to get them; in CI, where everything must be there, fail."""
    for stack in stacks:
        need_installed(not lacking(stack), lacking(stack), "scripts/install-peers.sh")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def road() -> AsyncIterator[Road]:
    async with open_road(seed=11) as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="module")
async def clear_road(road: Road) -> Road:
    road.proxy.impair(up=PERFECT, down=PERFECT)
    return road


@asynccontextmanager
async def foreign(road: Road, room: str, *stacks: Stack) -> AsyncIterator[list[ForeignPlayer]]:
    """Players with these stacks; each publishes."""
    players: list[ForeignPlayer] = []
    try:
        for stack in stacks:
            players.append(
                await ForeignPlayer.join(stack, router=road.fleet.router_urls()[0], secret=road.fleet.secret, room=room)
            )
        await asyncio.gather(*(player.publish() for player in players))
        yield players
    finally:
        await asyncio.gather(*(player.leave() for player in players))


@asynccontextmanager
async def bot(road: Road, room: str) -> AsyncIterator[Bot]:
    config = BotsConfig(
        routers=tuple(road.fleet.router_urls()), secret=road.fleet.secret, bots=1, room=room, seed=3
    ).check()
    bots = BotFleet(config, clip=load(), rule=safe_to_move, emit=lambda event, **facts: None)
    running = asyncio.create_task(bots.run())
    try:
        await until(lambda: bool(bots.bots))
        yield bots.bots[0]
    finally:
        bots.stopping.set()
        await running


def seen_and_heard(stats: dict[str, Any], *, more_than: dict[str, Any] | None = None) -> bool:
    """One picture that goes on and one tone have been decoded, for long enough."""
    if len(stats["video"]) != 1 or len(stats["audio"]) != 1:
        return False
    before = more_than or {"video": [{"frames": 0, "changed": 0}], "audio": [{"frames": 0, "audible": 0}]}
    return bool(
        stats["video"][0]["frames"] - before["video"][0]["frames"] >= FRAMES
        and stats["video"][0]["changed"] - before["video"][0]["changed"] >= FRAMES // 2
        and stats["audio"][0]["frames"] - before["audio"][0]["frames"] >= SOUNDS
        and stats["audio"][0]["audible"] - before["audio"][0]["audible"] >= AUDIBLE
    )


async def all_that_comes(player: ForeignPlayer, *, size: tuple[int, int]) -> dict[str, Any]:
    stats = await player.until_received(seen_and_heard)
    assert (stats["video"][0]["width"], stats["video"][0]["height"]) == size
    assert stats["profiles"] == [PROFILE, PROFILE]
    return stats


def assert_healthy(counters: PlaneCounters) -> None:
    assert set(counters.drops) <= HARMLESS, counters.drops
    assert counters["forwarded"] > 0


async def until_async(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(WITHIN_S):
        while not await condition():  # noqa: ASYNC110 - other programs are asked
            await asyncio.sleep(0.2)


def got(one: Bot) -> tuple[int, int]:
    """Frames and Opus packets that a bot has received whole."""
    gaps = one.report(now=time.monotonic()).gaps
    return gaps.video_units, gaps.audio_units


@pytest.mark.parametrize("stack", [WRTC, GSTREAMER], ids=lambda stack: stack.name)
async def test_a_foreign_stack_and_a_bot_see_and_hear_each_other(clear_road: Road, stack: Stack) -> None:
    needs(stack)
    room = f"bot-{secrets.token_hex(4)}"
    async with foreign(clear_road, room, stack) as (player,), bot(clear_road, room) as companion:
        started = await clear_road.counters()  # by now nothing is under way of those who left earlier
        await player.subscribe(TRACKS)
        await all_that_comes(player, size=(320, 180))
        await until(lambda: got(companion)[0] >= FRAMES and got(companion)[1] >= SOUNDS)
        assert_healthy(await clear_road.counters() - started)


async def test_two_foreign_stacks_see_and_hear_each_other_and_repair_what_is_lost(clear_road: Road) -> None:
    needs(WRTC, GSTREAMER)
    async with foreign(clear_road, f"two-{secrets.token_hex(4)}", WRTC, GSTREAMER) as players:
        begun = await clear_road.counters()  # by now nothing is under way of those who left earlier
        await asyncio.gather(*(player.subscribe(TRACKS) for player in players))
        calm = await asyncio.gather(*(all_that_comes(player, size=(480, 270)) for player in players))
        assert_healthy(await clear_road.counters() - begun)

        started = await clear_road.counters()
        clear_road.turn_bad()

        async def lost_both_ways() -> bool:
            counters = await clear_road.counters() - started
            return min(counters["nacks_sent"], counters["rtx_received"], counters["resent"]) >= 3

        await until_async(lost_both_ways)
        for player, before in zip(players, calm, strict=True):
            await player.until_received(lambda stats, before=before: seen_and_heard(stats, more_than=before))  # type: ignore[misc]
        counters = await clear_road.counters() - started
        came_of = fates(counters)
        assert counters["nacks_received"] == sum(came_of.values()), came_of
        assert came_of["resend-over-budget"] == 0, came_of
        assert set(counters.drops) <= HARMLESS | REPAIRS
