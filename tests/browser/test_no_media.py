"""The SFU's announced UDP port is closed while its websocket is well: the page says so, and no one counts as moved."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import BrowserContext

from shared.http_client import get_json
from tests.browser.room import Person, until
from tests.fakes.road import Road, open_road

pytestmark = pytest.mark.asyncio(loop_scope="session")

TOLD_WITHIN_S = 20.0
NOTE = """
    window.noted = [];
    for (const name of ["no-media", "media", "moved", "recovered"]) {
      window.sluice.on(name, (detail) => noted.push([name, detail]));
    }
"""


@pytest_asyncio.fixture(loop_scope="session")
async def road() -> AsyncIterator[Road]:
    async with open_road(seed=1) as road:
        yield road


async def told_of(person: Person) -> list[str]:
    noted: list[list[object]] = await person.page.evaluate("noted")
    return [str(name) for name, _ in noted]


async def test_a_closed_port_is_told_in_words_within_20_seconds_and_moves_no_one(
    browser: BrowserContext, road: Road
) -> None:
    page = road.fleet.page
    ada = await Person.join(browser, page, room="dead", name="Ada")
    bob = await Person.join(browser, page, room="dead", name="Bob")
    await ada.page.evaluate(NOTE)
    await ada.sees_and_hears()
    assert await ada.page.inner_text("#connection") == "Connected"
    road.proxy.close()  # from now on nothing listens on the announced port

    async def said() -> bool:
        return await ada.page.is_visible("#no-media")

    await until(said, "Ada's page says that nothing gets through", within_s=TOLD_WITHIN_S)
    assert await ada.page.inner_text("#connection") == "No media"
    assert "do not get through" in await ada.page.inner_text("#no-media")

    async def both_ways() -> bool:
        missing: list[str] = await ada.page.evaluate("sluice.state.media.missing")
        return missing == ["send", "receive"]

    await until(both_ways, "neither way gets through", within_s=TOLD_WITHIN_S)
    assert "no-media" in await told_of(ada)

    late = await Person.join(browser, page, room="dead", name="Carol")

    async def said_to_carol() -> bool:
        return await late.page.is_visible("#no-media")

    await until(said_to_carol, "Carol's page says so as well", within_s=TOLD_WITHIN_S)
    words = await late.page.inner_text("#no-media")
    assert "sfu-1" in words or "The others" in words

    async def counted() -> bool:
        (router,) = (await get_json(road.fleet.session, page + "api/fleet"))["routers"]
        return bool(router["without_media"] == 3 and {"Ada", "Bob", "Carol"} == names(router))

    await until(counted, "the fleet page's feed counts and names them", within_s=30.0)
    await asyncio.sleep(20.0)  # in which a page that believes its websocket would have moved once or twice
    assert not {"moved", "recovered", "media"} & set(await told_of(ada))
    assert await late.home() is None
    assert ada.problems == bob.problems == late.problems == []


def names(router: dict[str, object]) -> set[str]:
    who: list[dict[str, str]] = router["who_without_media"]  # type: ignore[assignment]
    return {each["who"] for each in who}
