"""The fleet page: a few SFUs as cards, many as tiles, an operator's commands, and names that are only ever text."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator

import msgspec
import pytest
import pytest_asyncio
from playwright.async_api import BrowserContext, Page

from bench.chromium import wait_true
from localfleet.fleet import Fleet
from rehearse.shell.demo.fleet import Demo, demo
from shared.errors import StoreUnavailable
from shared.records import Drain, SfuState
from shared.store.store import Store
from shared.tokens import OperatorClaims, PlayerClaims, issue

pytestmark = pytest.mark.asyncio(loop_scope="session")

SIDEWAYS = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
MANY = 80


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def many() -> AsyncIterator[Demo]:
    """Eighty simulated SFUs on a real router. Their rollout stands still: tests drain some themselves."""
    async with demo(sfus=MANY, players=8, port=0, seed=4) as running:
        running.fleet.rolling = False
        yield running
        assert not running.task.done(), "the demo has broken"


async def tiles_of(browser: BrowserContext, many: Demo) -> Page:
    page = await browser.new_page()
    await page.goto(many.page)
    await wait_true(page, f"document.querySelectorAll('.tile-sfu').length >= {MANY - 2}")
    return page


async def sign_in(page: Page, token: str) -> None:
    await page.click("#operator")
    await page.fill("#operator-token", token)
    await page.click("dialog button.primary")


async def home_of_a_player(many: Demo) -> str:
    """An SFU that has a player whose session is here, and takes new work."""
    for _ in range(600):
        for room in many.router.state.rooms:
            for record in room.players.values():
                known = many.fleet.sfus.get(record.sfu)
                if known is not None and not known.draining:
                    return record.sfu
        await asyncio.sleep(0.1)
    raise AssertionError("no player has come in a minute")


async def report_for_ever(many: Demo, state: SfuState) -> None:
    """Write an SFU's state as its routers would, so that it counts as alive."""
    store = Store(many.redis, fleet=many.name)
    try:
        while True:
            state = msgspec.structs.replace(state, revision=state.revision + 1)
            with contextlib.suppress(StoreUnavailable):
                await store.put_sfu(state)
            await asyncio.sleep(0.5)
    finally:
        await store.close()


async def test_a_few_sfus_are_cards_with_the_part_that_binds(browser: BrowserContext, live: Fleet) -> None:
    page = await browser.new_page()
    await page.goto(f"{live.page}fleet.html")
    card = page.locator(".sfu-card:has(.part[data-binds])").first
    await card.wait_for()
    assert await card.locator(".part").count() == 3
    assert "of 700 Mbit/s" in str(await card.text_content())
    assert await page.locator(".tile-sfu").count() == 0


async def test_an_operator_cordons_and_uncordons(browser: BrowserContext, live: Fleet) -> None:
    sfu = next(name for name, program in live.sfus.items() if program.child.running)
    page = await browser.new_page()
    await page.goto(f"{live.page}fleet.html")
    card = page.get_by_role("article", name=f"{sfu}, ")
    await card.get_by_role("button").click()
    await page.get_by_role("button", name="Cordon", exact=True).click()

    wrong = issue(PlayerClaims(room="r", identity="i", admin=True), secret=live.secret, now_at=time.time(), ttl_s=60)
    await page.fill("#operator-token", wrong)
    await page.click("dialog button.primary")
    await page.wait_for_selector("dialog .error:has-text('sluice token')")
    right = issue(OperatorClaims(operator="olga"), secret=live.secret, now_at=time.time(), ttl_s=600)
    await page.fill("#operator-token", right)
    await page.click("dialog button.primary")
    await page.fill("#command-reason", "new kernel")
    await page.click("dialog button.primary")

    await page.wait_for_selector("#drawer .drain-words:has-text('by olga: new kernel')")
    await page.reload()
    await page.wait_for_selector("#operator:has-text('Operator olga')")
    assert await page.evaluate("localStorage.length") == 0, "kept for the tab only"
    await page.get_by_role("article", name=f"{sfu}, Cordoned").get_by_role("button").click()
    await page.get_by_role("button", name="Uncordon").click()
    await page.click("dialog button.primary")
    await page.get_by_role("article", name=f"{sfu}, ").locator(".drain").wait_for(state="hidden")
    await page.wait_for_selector("#drawer .verbs button:has-text('Drain')")
    assert await page.evaluate("document.activeElement.closest('#drawer') !== null"), "the keyboard goes on from there"
    await page.evaluate("sessionStorage.clear()")


async def test_a_refused_command_says_what_to_do(browser: BrowserContext, many: Demo) -> None:
    page = await tiles_of(browser, many)
    await sign_in(page, many.token)
    await page.wait_for_selector("#operator:has-text('Operator demo')")
    await page.route("**/api/sfus/*/drain", lambda route: route.abort())
    sfu = await home_of_a_player(many)
    await page.locator(f'.tile-sfu[data-sfu="{sfu}"]').click()
    await page.click("#drawer .verbs button:has-text('Drain')")
    await page.click("dialog button.primary")
    await page.wait_for_selector("#drawer .order[data-state='failed']:has-text('does not answer')")
    assert await page.is_enabled("#drawer .verbs button:has-text('Drain')"), "one can try again"


async def test_a_drain_from_the_page_shows_who_stays_and_why(browser: BrowserContext, many: Demo) -> None:
    page = await tiles_of(browser, many)
    await sign_in(page, many.token)
    sfu = await home_of_a_player(many)
    await page.locator(f'.tile-sfu[data-sfu="{sfu}"]').click()
    await page.click("#drawer .verbs button:has-text('Drain')")
    await page.click("dialog button.primary")
    await page.wait_for_selector("#drawer .drain-words:has-text('Draining for')")
    await page.wait_for_selector("#drawer .left li:nth-child(1):has-text('still here')")
    assert await page.locator("#drawer .verbs button").all_text_contents() == ["Uncordon"]


async def test_where_the_api_is_not_open_the_page_tells_an_operator_and_no_other(browser: BrowserContext) -> None:
    async with demo(sfus=3, players=2, port=0, seed=5, api_open=False) as running:
        page = await browser.new_page()
        await page.goto(running.page)
        await page.wait_for_selector("#trouble:has-text('only operators')")
        assert await page.locator(".sfu-card").count() == 0
        await sign_in(page, running.token)
        await wait_true(page, "document.querySelectorAll('.sfu-card').length >= 3")
        await page.wait_for_selector("#trouble", state="hidden")
        await page.reload()
        await wait_true(page, "document.querySelectorAll('.sfu-card').length >= 3")
        await page.close()


async def test_many_sfus_are_tiles_that_can_be_found(browser: BrowserContext, many: Demo) -> None:
    page = await tiles_of(browser, many)
    assert await page.locator(".sfu-card").count() == 0
    assert await page.locator(".group").count() > 1, "grouped by cell"
    await page.click(".chip:has-text('Draining')")
    await page.wait_for_selector("#found:has-text('shown')")
    states = await page.eval_on_selector_all(".tile-sfu", "tiles => tiles.map((tile) => tile.dataset.state)")
    assert set(states) == {"draining"}
    await page.click("#clear")
    await page.fill("#find", "eu-west load>30")
    await wait_true(page, "document.querySelectorAll('.group').length === 1")
    await page.fill("#find", "nothing like this")
    await page.wait_for_selector("#found:has-text('No SFU fits')")


async def test_tiles_are_walked_with_the_keyboard(browser: BrowserContext, many: Demo) -> None:
    page = await tiles_of(browser, many)
    await page.locator('.tile-sfu[tabindex="0"]').focus()
    first = await page.evaluate("document.activeElement.dataset.sfu")
    await page.keyboard.press("ArrowRight")
    second = await page.evaluate("document.activeElement.dataset.sfu")
    await page.keyboard.press("ArrowDown")
    below = await page.evaluate("document.activeElement.dataset.sfu")
    assert len({first, second, below}) == 3
    assert await page.locator('.tile-sfu[tabindex="0"]').count() == 1, "one stop in the tab order"
    await page.keyboard.press("Enter")
    await page.wait_for_selector(f"#drawer .badge:has-text('{below}')")
    await page.keyboard.press("Escape")
    await page.wait_for_selector("#drawer", state="hidden")
    assert await page.evaluate("document.activeElement.dataset.sfu") == below


async def test_tiles_stay_while_figures_change(browser: BrowserContext, many: Demo) -> None:
    page = await tiles_of(browser, many)
    await page.evaluate(
        """() => {
            window.changes = 0;
            document.querySelectorAll('.tile-sfu').forEach((tile) => { tile.marked = true; });
            const all = { subtree: true, childList: true, attributes: true, characterData: true };
            new MutationObserver(({ length }) => { window.changes += length; })
                .observe(document.getElementById('tiles'), all);
        }"""
    )
    asked = "performance.getEntriesByType('resource').filter(({ name }) => name.endsWith('api/fleet')).length"
    before = await page.evaluate(asked)
    await wait_true(page, f"{asked} >= {before + 4}")
    assert await page.evaluate("window.changes") > 0, "figures do change"
    fresh = await page.evaluate("[...document.querySelectorAll('.tile-sfu')].filter((tile) => !tile.marked).length")
    assert fresh <= 4, "only SFUs that have come are new elements"


async def test_names_from_the_network_are_only_text(browser: BrowserContext, many: Demo) -> None:
    evil = "<img src=x onerror='window.hacked=1'>"
    drain = Drain(by=evil, reason=evil, exit_when_empty=True, drain_max_s=60.0)
    state = SfuState(sfu=evil, address=evil, cell=evil, version=evil, status="CORDONED", drain=drain, incarnation=1)
    reports = asyncio.create_task(report_for_ever(many, state))
    page = await tiles_of(browser, many)
    await page.wait_for_selector(".row-button .badge:has-text('onerror')")
    await page.locator(".row-button", has_text="onerror").click()
    await page.wait_for_selector("#drawer .drain-words:has-text('onerror')")
    assert await page.evaluate("window.hacked") is None
    assert await page.locator("main img, aside img").count() == 0
    await page.set_viewport_size({"width": 360, "height": 740})
    assert await page.evaluate(SIDEWAYS) == 0, "long names take no more room than there is"
    reports.cancel()
    await asyncio.gather(reports, return_exceptions=True)


async def test_a_name_turns_around_nothing_but_itself(browser: BrowserContext, many: Demo) -> None:
    page = await tiles_of(browser, many)
    left = """(name) => {
        const [line, first, then] = ["p", "b", "span"].map((tag) => document.createElement(tag));
        [first.textContent, then.textContent] = [name, "ONLINE"];
        line.append(first, " ", then);
        document.querySelector("main").append(line);
        return [first, then].map((each) => each.getBoundingClientRect().left);
    }"""
    for control in ("\u202e", "\u2067", "\u202b"):
        name, status = await page.evaluate(left, f"{control}sfu-1")
        assert name < status


async def test_many_sfus_fit_a_phone(browser: BrowserContext, many: Demo) -> None:
    page = await tiles_of(browser, many)
    await page.set_viewport_size({"width": 360, "height": 740})
    assert await page.evaluate(SIDEWAYS) == 0


async def test_a_router_that_is_gone_is_said_and_the_last_picture_stays(browser: BrowserContext, many: Demo) -> None:
    page = await tiles_of(browser, many)
    await page.route("**/api/**", lambda route: route.abort())
    await page.wait_for_selector("#trouble:has-text('does not answer')")
    assert await page.locator(".tile-sfu").count() >= MANY - 2
    await page.unroute("**/api/**")
    await page.wait_for_selector("#trouble", state="hidden")
