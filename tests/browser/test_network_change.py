"""A device in a network of its own, whose address changes in the middle of a call (M10), with either browser."""

from __future__ import annotations

import asyncio
import stat
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import BrowserContext

from bench.chromium import find_chromium, open_chromium
from localfleet.fleet import Fleet, FleetSpec
from tests.browser.firefox import find_firefox, open_firefox
from tests.browser.network import Network
from tests.browser.room import Person, until
from tests.fakes.needed import need_installed

pytestmark = pytest.mark.asyncio(loop_scope="session")


@asynccontextmanager
async def open_device(kind: str, network: Network, folder: Path) -> AsyncIterator[BrowserContext]:
    """A browser that has this network only."""
    if kind == "firefox":
        async with open_firefox(find_firefox(), network) as context:
            yield context
        return
    chromium = find_chromium()
    need_installed(chromium, "Chromium", "apt-get install chromium, or set SLUICE_CHROMIUM to a Chrome")
    wrapper = folder / "chromium-in-its-network"
    wrapper.write_text(f'#!/bin/sh\nexec {" ".join(network.command(str(chromium)))} "$@"\n')
    wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR)
    async with open_chromium(str(wrapper)) as context:
        yield context


@pytest.mark.parametrize("kind", ["chromium", "firefox"])
async def test_a_call_goes_on_when_the_devices_address_changes(
    browser: BrowserContext, tmp_path: Path, kind: str
) -> None:
    async with Network.made() as network, open_device(kind, network, tmp_path) as device:
        spec = FleetSpec(routers=1, sfus=2, host=network.ours, router_flags=("--dev-tokens",))
        async with Fleet(spec) as fleet:
            ada = await Person.join(device, fleet.page, room="away", name="Ada")
            bob = await Person.join(browser, fleet.page, room="away", name="Bob")
            for who in (ada, bob):
                await who.sees_and_hears(frames=30)
            peers = await ada.opened_peers()

            await network.change_address()

            changed, before = time.monotonic(), {who: await packets(who) for who in (ada, bob)}
            for who in (ada, bob):
                await until(lambda who=who: has_grown(who, before[who]), f"{who.name} goes on", within_s=40)
            print(f"{kind}: both see and hear each other {time.monotonic() - changed:.1f} s after the change")
            await asyncio.sleep(5)
            assert await ada.opened_peers() == peers, "new connections instead of the same on another network"
            assert await ada.closed_peers() == 0


async def packets(who: Person) -> dict[str, int]:
    """Packets of what is on display, by kind."""
    return {each.kind: each.packets for each in await who.received()}


async def has_grown(who: Person, before: dict[str, int]) -> bool:
    """Have a hundred packets more of each kind come?"""
    now = await packets(who)
    return all(now.get(kind, 0) > count + 100 for kind, count in before.items())
