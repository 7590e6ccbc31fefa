"""Things that happen in the wrong second: a router asleep while the store is emptied, people who leave while cut."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import pytest_asyncio

import player
from localfleet.fleet import Fleet, FleetSpec
from rehearse.shell.chaos.acts import _flush
from rehearse.shell.chaos.roads import ChaosRoads
from router.shell.liveness import LOST_AFTER_S
from shared.http_client import get_json
from shared.tokens import PlayerClaims, issue

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(240)]
WITHIN_S = 40.0
ASLEEP_S = 30.0


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene() -> AsyncIterator[tuple[Fleet, ChaosRoads]]:
    roads = ChaosRoads()
    async with Fleet(FleetSpec(routers=3, sfus=2), roads=roads) as running:
        yield running, roads
    await roads.close()


async def until(holds: Callable[[], Awaitable[bool]], *, within_s: float = WITHIN_S) -> None:
    deadline = time.monotonic() + within_s
    while not await holds():
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(0.2)


def token(fleet: Fleet, identity: str, room: str) -> str:
    claims = PlayerClaims(room=room, identity=identity)
    return issue(claims, secret=fleet.secret, now_at=time.time(), ttl_s=600)


async def people(fleet: Fleet, router: str, room: str) -> list[tuple[str, str]]:
    """Identity and session of each record that this router shows, sorted."""
    answer = await get_json(fleet.session, f"{fleet.routers[router].http}/api/rooms/{room}")
    return sorted((record["identity"], record["player"]) for record in (answer or {"players": []})["players"])


async def test_a_router_that_slept_while_the_store_was_emptied_brings_no_old_session_back(
    scene: tuple[Fleet, ChaosRoads],
) -> None:
    """It was away for half a minute. Meanwhile one of its players went elsewhere and left, and another joined."""
    fleet, _ = scene
    urls, (awake, other, asleep) = fleet.router_urls(), list(fleet.routers)
    sleeping = fleet.routers[asleep]
    async with (
        player.join(urls[0], token(fleet, "ann", "sleep")) as ann,
        player.join(urls[2], token(fleet, "bob", "sleep")) as first,
        player.join(urls[2], token(fleet, "cid", "sleep")) as gone,
    ):
        for me in (first, gone):
            me._participant.router._urls.append(f"{urls[1]}/player")  # known from now on
        await until(lambda: _knows(ann, {first.session, gone.session}))
        sleeping.child.send_signal(signal.SIGSTOP)
        try:
            began = time.monotonic()
            assert fleet.redis is not None
            await _flush(fleet.redis.url)
            async with player.join(urls[1], token(fleet, "bob", "sleep")) as second:
                await until(lambda: _is_on(gone, urls[1]))  # its own websocket fell silent
                await gone.leave()
                await asyncio.sleep(max(0.0, began + ASLEEP_S - time.monotonic()))
                sleeping.child.send_signal(signal.SIGCONT)
                right = [("ann", ann.session), ("bob", second.session)]

                async def all_agree() -> bool:
                    return all([await people(fleet, name, "sleep") == right for name in (awake, other)])

                await until(all_agree)
                for _ in range(25):  # what the one that slept has to say, it has said by then
                    await asyncio.sleep(0.2)
                    assert await all_agree()
                assert await people(fleet, asleep, "sleep") in ([], right)
        finally:
            sleeping.child.send_signal(signal.SIGCONT)


async def _is_on(me: player.Me, url: str) -> bool:
    return me._participant.router.url.startswith(url) and me._participant.mover.online


async def _knows(me: player.Me, sessions: set[str]) -> bool:
    return set(me.players) == sessions


async def test_people_who_leave_while_their_websockets_are_being_made_again_are_gone_within_thirty_seconds(
    scene: tuple[Fleet, ChaosRoads],
) -> None:
    """No goodbye gets through, to a router or to an SFU."""
    fleet, roads = scene
    urls = fleet.router_urls()
    async with player.join(urls, token(fleet, "eve", "leave")) as eve:
        ann = player.join(urls, token(fleet, "ann", "leave"))
        bob = player.join(urls, token(fleet, "bob", "leave"))
        both = [await each.__aenter__() for each in (ann, bob)]
        for me in (eve, *both):
            await me.publish("audio")
            await me.settled(timeout_s=WITHIN_S)
        await until(lambda: _knows(eve, {me.session for me in both}))
        cut = [*(road for road in roads.routers.values()), *roads.signalling.values()]
        for road in cut:
            road.cut()
        await asyncio.sleep(0.3)
        for each in (ann, bob):
            await each.__aexit__(None, None, None)
        left = time.monotonic()
        for road in cut:
            road.mend()
        await until(lambda: _knows(eve, set()), within_s=30.0)

        async def sfus_are_rid_of_them() -> bool:
            states = await fleet.sfu_states()
            return states is not None and sum(state["players"] for state in states.values()) == 1

        await until(sfus_are_rid_of_them, within_s=max(1.0, left + 32.0 - time.monotonic()))
    assert LOST_AFTER_S < 30.0
