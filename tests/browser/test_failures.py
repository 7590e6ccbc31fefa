"""Killing things: a router whose players resume on another, an SFU whose players rejoin elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import signal
import time

import pytest
from playwright.async_api import BrowserContext, CDPSession, Error

from bench.chromium import find_chromium, open_chromium
from localfleet.fleet import Fleet
from shared.tokens import SFU_TOKEN_TTL_S
from tests.browser.room import Person, until
from tests.browser.test_call import pair

pytestmark = pytest.mark.asyncio(loop_scope="session")

REJOINED_WITHIN_S = 5.0
NOISE = 3.0
"""A shared machine may be this much slower than the figure that is promised."""


async def test_a_killed_router_is_not_noticed_in_the_media(browser: BrowserContext, live: Fleet) -> None:
    bob, ada = await pair(browser, live)  # the router that is killed is not the one that serves the pages
    state = await ada.state()
    live.routers[state["router"]].child.send_signal(signal.SIGKILL)
    await until(lambda: resumed(ada, state["router"]), "Ada has resumed on the other router")
    received = [*await ada.received(), *await bob.received()]
    frames = max(each.frames_decoded for each in received)
    await ada.sees_and_hears(frames=frames + 30)
    await bob.sees_and_hears(frames=frames + 30)
    after = await ada.state()
    assert after["player"] == state["player"], "the session is the same"
    assert after["move"]["home"] == state["move"]["home"]
    copies = {each["copy"] for each in state["publications"]}
    assert {each.copy for each in await ada.received()} == copies, "the media never noticed"
    assert (await bob.state())["switches"] == []


async def resumed(person: Person, old_router: str) -> bool:
    state = await person.state()
    return bool(state["connection"]["status"] == "open" and state["router"] != old_router)


async def test_a_broken_media_websocket_is_not_noticed_in_the_media(browser: BrowserContext, live: Fleet) -> None:
    ada, bob = await pair(browser, live)
    before, home = await ada.received(), await ada.home()
    assert await ada.break_sockets("/media") == 1

    async def opened_again() -> bool:
        return await ada.opened_sockets("/media") == 2

    await until(opened_again, "the websocket has been opened again")
    frames = max(each.frames_decoded for each in [*before, *await bob.received()])
    await ada.sees_and_hears(frames=frames + 50)
    await bob.sees_and_hears(frames=frames + 50)
    assert await ada.home() == home
    assert {each.copy for each in await ada.received()} == {each.copy for each in before}
    assert await ada.opened_sockets("/media") == 2, "once was enough"
    assert (await bob.state())["switches"] == []


@pytest.mark.parametrize("away_s", [3, 10])
async def test_media_goes_on_while_its_websocket_is_away(browser: BrowserContext, live: Fleet, away_s: int) -> None:
    ada, bob = await pair(browser, live)
    before, home = await ada.received(), await ada.home()
    await ada.take_away("/media")
    assert await ada.break_sockets("/media") == 1
    await asyncio.sleep(away_s)
    frames = max(each.frames_decoded for each in [*await ada.received(), *await bob.received()])
    await ada.sees_and_hears(frames=frames + 10)
    await bob.sees_and_hears(frames=frames + 10)
    await ada.take_away(None)

    async def inside_again() -> bool:
        return bool(await ada.page.evaluate(INSIDE))

    await until(inside_again, "the websocket is open again")
    await ada.sees_and_hears(frames=frames + 50)
    await bob.sees_and_hears(frames=frames + 50)
    assert [await ada.closed_peers(), await bob.closed_peers()] == [0, 0]
    assert await ada.home() == home
    assert {each.copy for each in await ada.received()} == {each.copy for each in before}
    assert (await bob.state())["switches"] == []


@pytest.mark.slow
@pytest.mark.timeout(240)
async def test_a_websocket_that_breaks_after_its_token_has_expired_costs_no_media(
    browser: BrowserContext, live: Fleet
) -> None:
    """At real length: a player that is inside gets back in, though the token of the first entry is over."""
    ada, bob = await pair(browser, live)
    before, home = await ada.received(), await ada.home()
    await asyncio.sleep(SFU_TOKEN_TTL_S + 5.0)
    for cut in (1, 2):
        assert await ada.break_sockets("/media") == 1

        async def inside_again(opened: int = cut + 1) -> bool:
            return await ada.opened_sockets("/media") == opened and bool(await ada.page.evaluate(INSIDE))

        await until(inside_again, f"inside again after cut {cut}")
        frames = max(each.frames_decoded for each in [*await ada.received(), *await bob.received()])
        await ada.sees_and_hears(frames=frames + 50)
        await bob.sees_and_hears(frames=frames + 50)
    assert [await ada.closed_peers(), await bob.closed_peers()] == [0, 0]
    assert await ada.home() == home
    assert {each.copy for each in await ada.received()} == {each.copy for each in before}
    assert (await ada.state())["media"]["missing"] == []
    assert (await bob.state())["switches"] == []


async def crash(session: CDPSession) -> None:
    """End the renderer of a page at once: its sockets are closed by the kernel."""
    with contextlib.suppress(Error, TimeoutError):
        async with asyncio.timeout(2.0):
            await session.send("Page.crash")


INSIDE = "openedSockets.some((each) => each.readyState === 1 && new URL(each.url).pathname === '/media')"


async def test_the_page_says_of_a_person_whose_machine_died_that_the_connection_is_lost(
    browser: BrowserContext, live: Fleet
) -> None:
    """A browser of its own is killed: no close frame, no DTLS goodbye."""
    room = f"died-{secrets.token_hex(4)}"
    bob = await Person.join(browser, live.page, room=room, name="Bob")
    executable = find_chromium()
    assert executable is not None
    async with open_chromium(executable) as machine:
        ada = await Person.join(machine, live.page, room=room, name="Ada")
        await bob.sees_and_hears()
        session = await machine.new_cdp_session(ada.page)
        await crash(session)
        died = time.monotonic()

        async def said() -> bool:
            lost = bob.page.locator(".tile .lost:visible")
            here = [each["name"] for each in (await bob.state())["players"]]
            return await lost.count() == 1 or here == ["Bob"]

        await until(said, "Bob's page says that Ada is lost, or gone", within_s=30.0)
        print(f"said after {time.monotonic() - died:.1f} s")
    assert bob.problems == []


async def test_a_killed_sfu_is_left_within_seconds(browser: BrowserContext, live: Fleet) -> None:
    ada, bob = await pair(browser, live)
    lost = await ada.home()
    assert lost is not None
    killed = time.monotonic()
    live.signal_sfu(lost, signal.SIGKILL)

    async def both_back() -> bool:
        for person in (ada, bob):
            copies = await person.received()
            back = [each for each in copies if each.sfu != lost and (each.frames_decoded > 0 or each.kind == "audio")]
            if await person.home() in (None, lost) or len(back) < 2:
                return False
        return True

    await until(both_back, "both see and hear each other elsewhere", within_s=NOISE * REJOINED_WITHIN_S)
    print(f"rejoined elsewhere, seen and heard again, after {time.monotonic() - killed:.2f} s")
    await ada.sees_and_hears(frames=30)
    await bob.sees_and_hears(frames=30)
    assert ada.problems == bob.problems == []
