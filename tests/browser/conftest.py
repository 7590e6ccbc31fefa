"""A real Chromium for the whole session, and a fleet of real processes for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio
from playwright.async_api import BrowserContext

from bench.chromium import find_chromium, open_chromium
from localfleet.fleet import Fleet, FleetSpec
from tests.fakes.needed import need_installed

ROUTERS, SFUS = 2, 3
CAP_KBPS = 20_000
"""Told to publishers by REMB: so much that a browser gets there only by believing it, never by measuring."""


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def chromium() -> AsyncIterator[BrowserContext]:
    """One browser; tests open pages in it and close them again."""
    executable = find_chromium()
    need_installed(executable, "Chromium", "apt-get install chromium, or set SLUICE_CHROMIUM to a Chrome")
    assert executable is not None
    async with open_chromium(executable) as context:
        yield context


@pytest_asyncio.fixture(loop_scope="session")
async def browser(chromium: BrowserContext) -> AsyncIterator[BrowserContext]:
    """The browser without the pages of earlier tests."""
    yield chromium
    for page in chromium.pages[1:]:  # the first one keeps the browser alive
        await page.evaluate("window.sluice?.close()")
        await page.close()


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def fleet_of_processes() -> AsyncIterator[Fleet]:
    """Routers, SFUs and a Redis server on loopback, for all tests: starting them takes longer than most tests."""
    cap = ("--publisher-cap-kbps", str(CAP_KBPS))
    spec = FleetSpec(routers=ROUTERS, sfus=SFUS, router_flags=("--dev-tokens",), sfu_flags=cap)
    async with Fleet(spec) as fleet:
        yield fleet


@pytest_asyncio.fixture(loop_scope="session")
async def live(fleet_of_processes: Fleet) -> Fleet:
    """Two routers and three SFUs that run: what an earlier test has ended is replaced. Tests use rooms of their own."""
    fleet = fleet_of_processes
    for _ in range(ROUTERS - sum(program.child.running for program in fleet.routers.values())):
        await fleet.add_router()
    for _ in range(SFUS - sum(program.child.running for program in fleet.sfus.values())):
        await fleet.add_sfu()
    return fleet
