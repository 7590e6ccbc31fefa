"""The Python client's websocket to its SFU goes away while UDP flows: no connection closes, and nothing is missed."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio

import player
from localfleet.fleet import Fleet, FleetSpec
from player.shell.media_link import MediaLink
from rehearse.shell.chaos.roads import ChaosRoads
from shared.tokens import SFU_TOKEN_TTL_S, PlayerClaims, issue

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(240)]
WITHIN_S = 40.0
SOUND = bytes([31 << 3])
"""First byte of an Opus packet of 20 ms."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene() -> AsyncIterator[tuple[Fleet, ChaosRoads]]:
    roads = ChaosRoads()
    async with Fleet(FleetSpec(routers=1, sfus=2), roads=roads) as running:
        yield running, roads
    await roads.close()


async def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not holds():
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(0.02)


class Talk:
    """Two players; each sends numbered sounds, and keeps the numbers that it hears."""

    def __init__(self) -> None:
        self.heard: dict[str, list[int]] = {"ann": [], "bob": []}
        self.events: list[player.PlayerEvent] = []
        self.players: list[player.Me] = []

    def links(self) -> list[MediaLink]:
        return [link for me in self.players for link in me._participant.connections._all()]

    def transports(self) -> list[object]:
        return [transport for link in self.links() for transport in link.transports]

    def missing(self) -> int:
        return sum(numbers[-1] - numbers[0] + 1 - len(set(numbers)) for numbers in self.heard.values())

    def steps(self) -> list[str]:
        return [event.step for event in self.events if isinstance(event, player.StepTaken)]

    async def hears(self, more: int = 50) -> None:
        """Everybody hears something new."""
        before = {name: len(numbers) for name, numbers in self.heard.items()}
        await until(lambda: all(len(self.heard[name]) > count + more for name, count in before.items()))

    async def is_back(self) -> None:
        await until(lambda: all(link.entered for link in self.links()))


@contextlib.asynccontextmanager
async def talk(fleet: Fleet, room: str) -> AsyncIterator[Talk]:
    both, feeds = Talk(), []
    async with contextlib.AsyncExitStack() as stack:
        for name, numbers in both.heard.items():
            claims = PlayerClaims(room=room, identity=name)
            token = issue(claims, secret=fleet.secret, now_at=time.time(), ttl_s=600)
            me = await stack.enter_async_context(player.join(fleet.router_urls(), token, on_event=both.events.append))
            me.on_frame(lambda frame, numbers=numbers: numbers.append(int(frame.data[-6:])))  # type: ignore[misc]
            feeds.append(asyncio.create_task(_feed(await me.publish("audio"))))
            both.players.append(me)
        try:
            await until(lambda: all(len(numbers) > 50 for numbers in both.heard.values()))
            for numbers in both.heard.values():
                numbers.clear()
            await both.hears()
            yield both
        finally:
            for feed in feeds:
                feed.cancel()
            await asyncio.gather(*feeds, return_exceptions=True)


async def _feed(track: player.LocalTrack) -> None:
    began, number = time.monotonic(), 0
    while True:
        track.send(SOUND + b"a sound of some length %06d" % number, media_s=number * 0.02)
        number += 1
        await asyncio.sleep(max(0.0, began + number * 0.02 - time.monotonic()))


@pytest.mark.parametrize("how", ["cut", "freeze"])
async def test_three_seconds_without_signalling_cost_nothing(scene: tuple[Fleet, ChaosRoads], how: str) -> None:
    fleet, roads = scene
    async with talk(fleet, f"three-{how}") as both:
        before, entries = both.transports(), len(both.links())
        road = roads.signalling[both.players[0].sfu]
        road.cut() if how == "cut" else road.freeze()
        await both.hears(140)
        assert not any(link.entered for link in both.links()) or how == "freeze"
        road.mend()
        await both.is_back()
        await both.hears()
        assert both.transports() == before, "no peer connection was closed, and none opened"
        assert len(both.links()) == entries
        assert both.missing() == 0
        assert "link-lost" not in both.steps()
        assert "evicted" not in both.steps()


@pytest.mark.slow
async def test_ten_seconds_without_signalling_after_the_token_has_expired_cost_nothing(
    scene: tuple[Fleet, ChaosRoads],
) -> None:
    """What the token opens is over by then; who is inside gets back in all the same."""
    fleet, roads = scene
    async with talk(fleet, "ten") as both:
        before = both.transports()
        await both.hears(int(50 * (SFU_TOKEN_TTL_S + 2)) // 2)
        await both.hears(int(50 * (SFU_TOKEN_TTL_S + 2)) // 2)
        road = roads.signalling[both.players[0].sfu]
        road.cut()
        await both.hears(500)
        road.mend()
        await both.is_back()
        await both.hears()
        assert both.transports() == before
        assert both.missing() == 0
        assert "evicted" not in both.steps()


async def test_an_sfu_whose_signalling_stays_away_is_left_without_a_gap(scene: tuple[Fleet, ChaosRoads]) -> None:
    """After 15 s another SFU is looked for, while the media goes on; what others still send there is heard on."""
    fleet, roads = scene
    async with talk(fleet, "away") as both:
        old = both.players[0].sfu
        road = roads.signalling[old]
        road.cut()
        await until(lambda: all(me.sfu not in ("", old) for me in both.players))
        await both.hears()
        road.mend()
        await both.hears()
        assert "link-lost" in both.steps()
        assert "evicted" not in both.steps()
        assert both.missing() == 0


@pytest.mark.parametrize("where", ["here", "there"])
async def test_a_subscribe_connection_that_breaks_alone_is_opened_again(
    scene: tuple[Fleet, ChaosRoads], where: str
) -> None:
    """To the SFU it is the same peer, which shakes hands once more; or it has lost its end and offers another. What is
    published never stops."""
    fleet, _ = scene
    async with talk(fleet, f"deaf-{where}") as both:
        ann, bob = both.players
        link = ann._participant.connections.at(ann.sfu)
        assert link is not None
        up, down = link.transports
        if where == "here":
            down._end("ice-silent")  # as when its consent has run out
        else:
            await down.close()  # only the SFU hears of it, and says so
        await until(lambda: link._down.connected and link._down.transport is not down)
        await both.hears()
        assert link.transports[0] is up
        numbers = both.heard[bob.identity]
        assert numbers[-1] - numbers[0] + 1 == len(set(numbers)), "Bob has missed nothing of Ann"
        assert "evicted" not in both.steps()
        assert "link-lost" not in both.steps()
