"""An app of another origin imports the client library from a router, as docs/browser-client.md tells it to."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from playwright.async_api import BrowserContext, TimeoutError

from localfleet.fleet import Fleet
from shared.http import serve
from shared.tokens import PlayerClaims, issue
from tests.browser.room import Person

pytestmark = pytest.mark.asyncio(loop_scope="session")


@asynccontextmanager
async def app_of_its_own(html: str) -> AsyncIterator[str]:
    """A web server that is no router: its port makes it another origin."""

    async def page(_: web.Request) -> web.Response:
        return web.Response(text=html, content_type="text/html")

    app = web.Application()
    app.router.add_get("/", page)
    runner = await serve(app, host="127.0.0.1", port=0)
    try:
        yield f"http://127.0.0.1:{runner.port}/"
    finally:
        await runner.cleanup()


async def test_an_app_of_another_origin_joins_and_follows_frames(browser: BrowserContext, live: Fleet) -> None:
    token = issue(PlayerClaims(room="origin", identity="eve"), secret=live.secret, now_at=time.time(), ttl_s=300)
    html = f"""<!doctype html><script type="module">
        import {{ Player }} from "{live.page}lib/index.js";
        window.player = new Player({{ routers: ["{live.router_urls()[0]}/player"], token: "{token}" }});
        window.shown = 0;
        player.on("track", () => window.shown++);
        await player.join();
        document.title = "joined";
    </script>"""

    await Person.join(browser, live.page, room="origin", name="Ada", media="pattern")
    async with app_of_its_own(html) as url:
        page = await browser.new_page()
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        await page.goto(url)
        try:
            await page.wait_for_function("document.title === 'joined' && window.shown > 0")
        except TimeoutError:
            raise AssertionError(said) from None
        assert not [line for line in said if "worker" in line.lower() or "CORS" in line], said
        await page.evaluate("player.close()")


async def test_copies_are_shown_though_the_worker_for_frames_can_not_be_loaded(
    browser: BrowserContext, live: Fleet
) -> None:
    room = "no-worker"
    ada = await Person.join(browser, live.page, room=room, name="Ada")
    await browser.route("**/frame-worker.js", lambda route: route.abort())
    try:
        bob = await Person.join(browser, live.page, room=room, name="Bob")
        await bob.sees_and_hears()
        assert (await bob.state())["gapsAreExact"] is False
        assert ada.problems == bob.problems == []
    finally:
        await browser.unroute("**/frame-worker.js")
