"""A page that the browser keeps for its back button, and one that it froze: the person is in the room again, once."""

from __future__ import annotations

import secrets

import pytest
from playwright.async_api import BrowserContext

from localfleet.fleet import Fleet
from tests.browser.room import Person, until

pytestmark = pytest.mark.asyncio(loop_scope="session")

KEPT = """(type) => {
    window.dispatchEvent(new PageTransitionEvent(type, { persisted: true }));
}"""
"""What the browser does to a page that it keeps. Playwright's Chromium keeps none, so the events are the page's own."""


async def names(person: Person) -> list[str]:
    state = await person.state()
    return sorted(each["name"] for each in state["players"])


async def two(browser: BrowserContext, live: Fleet) -> tuple[Person, Person]:
    room = f"life-{secrets.token_hex(4)}"
    ada = await Person.join(browser, live.page, room=room, name="Ada")
    bob = await Person.join(browser, live.page, room=room, name="Bob")
    await bob.sees_and_hears()
    return ada, bob


async def test_a_page_that_is_kept_leaves_the_room_and_joins_again_when_it_is_shown(
    browser: BrowserContext, live: Fleet
) -> None:
    ada, bob = await two(browser, live)
    before = (await ada.state())["player"]
    await ada.page.evaluate(KEPT, "pagehide")

    async def alone() -> bool:
        return await names(bob) == ["Bob"]

    await until(alone, "Bob sees at once that Ada has left", within_s=10.0)
    # Some browsers say both: https://github.com/yomidevs/yomitan/pull/2236
    await ada.page.evaluate("document.dispatchEvent(new Event('resume'))")
    await ada.page.evaluate(KEPT, "pageshow")

    async def back() -> bool:
        return await names(bob) == ["Ada", "Bob"]

    await until(back, "Ada is in the room again, once")
    assert (await ada.state())["player"] != before
    await bob.sees_and_hears()
    await ada.sees_and_hears()
    assert ada.problems == bob.problems == []


async def test_going_away_and_back_leaves_no_ghost(browser: BrowserContext, live: Fleet) -> None:
    ada, bob = await two(browser, live)
    await ada.page.goto(f"{live.page}fleet.html")

    async def alone() -> bool:
        return await names(bob) == ["Bob"]

    await until(alone, "Ada has left", within_s=10.0)
    await ada.page.go_back()
    await until(ada.joined, "Ada's page has joined again")

    async def back() -> bool:
        return await names(bob) == ["Ada", "Bob"]

    await until(back, "Ada is in the room again, once")
    await bob.sees_and_hears()
    assert ada.problems == bob.problems == []


async def test_a_page_that_was_frozen_goes_on_in_its_session(browser: BrowserContext, live: Fleet) -> None:
    ada, bob = await two(browser, live)
    before = await ada.state()
    session = await browser.new_cdp_session(ada.page)
    await session.send("Page.setWebLifecycleState", {"state": "frozen"})
    await session.send("Page.setWebLifecycleState", {"state": "active"})
    frames = max(each.frames_decoded for each in await ada.received())
    await ada.sees_and_hears(frames=frames + 30)
    after = await ada.state()
    assert (after["player"], after["media"]["missing"]) == (before["player"], [])
    assert await names(bob) == ["Ada", "Bob"]
    assert ada.problems == bob.problems == []
