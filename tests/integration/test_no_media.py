"""The SFU's announced UDP port is closed while its websocket is well: what the Python client and operators are told."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator

import pytest

import player
from shared.http_client import get_json
from shared.tokens import PlayerClaims, issue
from tests.fakes.road import Road, open_road

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(150)]
TOLD_WITHIN_S = 20.0
OPUS = bytes([31 << 3]) + b"a sound"


@contextlib.asynccontextmanager
async def talking(road: Road, identity: str) -> AsyncIterator[tuple[player.Me, list[player.PlayerEvent]]]:
    """A player that sends a sound each 20 ms, and what it is told."""
    events: list[player.PlayerEvent] = []
    claims = PlayerClaims(room="dead", identity=identity)
    token = issue(claims, secret=road.fleet.secret, now_at=time.time(), ttl_s=600.0)
    async with player.join(road.fleet.router_urls(), token, on_event=events.append) as me:
        track = await me.publish("audio")

        async def feed() -> None:
            while True:
                track.send(OPUS)
                await asyncio.sleep(0.02)

        task = asyncio.create_task(feed())
        try:
            yield me, events
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


@contextlib.asynccontextmanager
async def listening(road: Road, identity: str) -> AsyncIterator[list[player.PlayerEvent]]:
    """A player that sends nothing (https://github.com/ant-media/Ant-Media-Server/issues/1755)."""
    events: list[player.PlayerEvent] = []
    claims = PlayerClaims(room="dead", identity=identity, publish=False)
    token = issue(claims, secret=road.fleet.secret, now_at=time.time(), ttl_s=600.0)
    async with player.join(road.fleet.router_urls(), token, on_event=events.append):
        yield events


async def told(
    events: list[player.PlayerEvent], kind: type[player.PlayerEvent], *, within_s: float
) -> player.PlayerEvent:
    deadline = time.monotonic() + within_s
    while True:
        for event in events:
            if isinstance(event, kind):
                return event
        assert time.monotonic() < deadline, f"no {kind.__name__} within {within_s:.0f} s: {events}"
        await asyncio.sleep(0.1)


async def test_a_closed_port_is_told_within_20_seconds_and_moves_no_one() -> None:
    async with (
        open_road(seed=1) as road,
        talking(road, "ann") as (_, ann),
        talking(road, "bob") as (_, bob),
        listening(road, "dan") as dan,
    ):
        for events in (ann, bob, dan):
            await told(events, player.TrackHeard, within_s=20.0)
        road.proxy.close()
        before = len(ann)
        missing = await told(ann, player.MediaMissing, within_s=TOLD_WITHIN_S)
        assert isinstance(missing, player.MediaMissing)
        assert missing.missing
        assert any("sfu-1" in tried for tried in missing.tried), missing.tried
        unheard = await told(dan, player.MediaMissing, within_s=TOLD_WITHIN_S)
        assert isinstance(unheard, player.MediaMissing)
        assert unheard.missing == ("receive",)
        async with talking(road, "carol") as (_, carol):
            await told(carol, player.MediaMissing, within_s=TOLD_WITHIN_S)
            deadline = time.monotonic() + 30.0
            while True:
                (router,) = (await get_json(road.fleet.session, road.fleet.page + "api/fleet"))["routers"]
                if {each["who"] for each in router["who_without_media"]} == {"ann", "bob", "carol", "dan"}:
                    break
                assert time.monotonic() < deadline, router
                await asyncio.sleep(0.2)
            assert router["without_media"] == 4
            await asyncio.sleep(20.0)  # in which a player that believes its websocket would have moved once or twice
            for events in (ann[before:], carol):
                assert not [each for each in events if isinstance(each, player.Relocated | player.Recovered)]
