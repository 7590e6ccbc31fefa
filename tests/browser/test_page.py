"""The page itself: what it says when something is missing, and that it fits a phone."""

from __future__ import annotations

import pytest
from playwright.async_api import BrowserContext, Page

from localfleet.fleet import Fleet
from tests.browser.room import Person

pytestmark = pytest.mark.asyncio(loop_scope="session")

UNLABELLED = """[...document.querySelectorAll('input, textarea, button, a')]
    .filter((e) => e.checkVisibility() && !e.labels?.length && !e.textContent.trim()).map((e) => e.outerHTML)"""
SIDEWAYS = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


async def test_a_token_that_is_refused_is_explained(browser: BrowserContext, live: Fleet) -> None:
    page = await browser.new_page()
    await page.goto(f"{live.page}?room=tea&name=Eve&token=forged&media=none&autojoin=1")
    await page.wait_for_selector("#join-error:not([hidden])")
    assert "token" in str(await page.text_content("#join-error"))
    assert await page.is_visible("#join-button"), "one can try again"


async def test_where_the_router_makes_no_tokens_the_page_asks_for_one(browser: BrowserContext, live: Fleet) -> None:
    page = await browser.new_page()
    await page.route("**/api/dev-token", lambda route: route.fulfill(status=404, json={"error": "dev tokens are off"}))
    await page.goto(f"{live.page}?room=tea&name=Eve&media=none&autojoin=1")
    await page.wait_for_selector("#join-error:has-text('needs a token')")
    assert await page.is_visible("textarea[name=token]"), "the field that it names"
    assert not await page.is_visible("#connection"), "nothing says that a session goes on"


async def test_both_pages_fit_a_phone_and_every_control_has_a_name(browser: BrowserContext, live: Fleet) -> None:
    person = await Person.join(browser, live.page, room="tea", name="Ada", media="pattern")
    fleet_page = await browser.new_page()
    await fleet_page.goto(f"{live.page}fleet.html")
    await fleet_page.wait_for_selector(".sfus article")
    for page in (person.page, fleet_page):
        await page.set_viewport_size({"width": 360, "height": 740})
        assert await page.evaluate(SIDEWAYS) == 0
        assert await page.evaluate(UNLABELLED) == []
    await lists_everything(fleet_page, live)


async def lists_everything(page: Page, live: Fleet) -> None:
    await page.locator("#rooms-section").evaluate("section => { section.open = true }")
    await page.wait_for_selector("#rooms tr:has-text('tea')")
    names = await page.locator(".sfus .badge").all_text_contents()
    assert {name for name, program in live.sfus.items() if program.child.running} <= set(names)
