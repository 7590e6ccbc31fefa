"""How a real Chromium is started, for benchmarks and tests: where it is, and the flags that give it a fake camera and a
quiet life."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Page

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--use-fake-device-for-media-stream",
    "--use-fake-ui-for-media-stream",
    # A person clicks before there is sound; a test does not.
    "--autoplay-policy=no-user-gesture-required",
    # Pages in the background keep their pace: several people share one window here.
    "--disable-background-timer-throttling",
    "--disable-renderer-backgrounding",
    "--disable-backgrounding-occluded-windows",
)
PATIENCE_MS = 60_000
"""For pages to load and elements to come, on a machine that is busy with other things."""


def find_chromium() -> str | None:
    """The browser's path: `SLUICE_CHROMIUM`, or the usual names; None when there is none."""
    wanted = os.environ.get("SLUICE_CHROMIUM")
    if wanted:
        return wanted
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


async def wait_true(page: Page, expression: str, *, within_ms: float = PATIENCE_MS) -> Any:
    """The value of a JavaScript expression once it is true. Raises `TimeoutError`.

    Playwright's own `wait_for_function` evaluates text inside the page, which our pages' security policy forbids.
    """
    async with asyncio.timeout(within_ms / 1000):
        while not (value := await page.evaluate(expression)):  # noqa: ASYNC110 - a page has no event for us
            await asyncio.sleep(0.05)
    return value


@asynccontextmanager
async def open_chromium(
    executable: str, *, scheme: Literal["light", "dark"] = "light", width: int = 1280, height: int = 800
) -> AsyncIterator[BrowserContext]:
    """A headless browser with a profile of its own, gone afterwards. Raises `ImportError` without playwright."""
    # Playwright is an extra (`sluice[dev]`); a command line that only lists its commands must work without it.
    from playwright.async_api import async_playwright

    with tempfile.TemporaryDirectory(prefix="sluice-chromium-", ignore_cleanup_errors=True) as profile:
        async with async_playwright() as playwright:
            context = await playwright.chromium.launch_persistent_context(
                profile,
                executable_path=executable,
                headless=True,
                args=list(FLAGS),
                color_scheme=scheme,
                viewport={"width": width, "height": height},
            )
            context.set_default_timeout(PATIENCE_MS)
            try:
                yield context
            finally:
                await context.close()
