"""Calls on real networks of their own: a device whose address changes in the middle of a call (M10)."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import BrowserContext

from bench.chromium import find_chromium, open_chromium
from localfleet.fleet import Fleet, FleetSpec
from tests.browser.network import Network
from tests.browser.room import Person, until
from tests.fakes.needed import need_installed

pytestmark = pytest.mark.asyncio(loop_scope="session")


@asynccontextmanager
async def browser_in(network: Network, folder: Path) -> AsyncIterator[BrowserContext]:
    """A Chromium that has this network only."""
    chromium = find_chromium()
    need_installed(chromium, "Chromium", "apt-get install chromium, or set SLUICE_CHROMIUM to a Chrome")
    wrapper = folder / "chromium-in-its-network"
    wrapper.write_text(f'#!/bin/sh\nexec ip netns exec {network.name} "{chromium}" "$@"\n')
    wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR)
    async with open_chromium(str(wrapper)) as context:
        yield context


async def test_a_call_goes_on_when_the_devices_address_changes(browser: BrowserContext, tmp_path: Path) -> None:
    need_installed(
        shutil.which("ip") and os.geteuid() == 0, "ip and root", "apt-get install iproute2, as root", also_in_ci=False
    )
    async with Network.made() as network, browser_in(network, tmp_path) as device:
        spec = FleetSpec(routers=1, sfus=2, host=network.ours, router_flags=("--dev-tokens",))
        async with Fleet(spec) as fleet:
            ada = await Person.join(device, fleet.page, room="away", name="Ada")
            bob = await Person.join(browser, fleet.page, room="away", name="Bob")
            for who in (ada, bob):
                await until(lambda who=who: hears_and_sees(who), f"{who.name} hears and sees the other")
            peers = await ada.opened_peers()

            await network.change_address()

            before = {who: await packets(who) for who in (ada, bob)}
            for who in (ada, bob):
                await until(lambda who=who: grown(who, before[who]), f"{who.name} goes on", within_s=30)
            await asyncio.sleep(5)
            assert await ada.opened_peers() == peers, "new connections instead of the same on another network"
            assert await ada.closed_peers() == 0


async def hears_and_sees(who: Person) -> bool:
    received = [each for each in await who.received() if each.packets > 20]
    return {each.kind for each in received if each.kind == "audio" or each.frames_decoded > 5} == {"audio", "video"}


async def packets(who: Person) -> dict[str, int]:
    return {each.kind: each.packets for each in await who.received()}


async def grown(who: Person, before: dict[str, int]) -> bool:
    now = await packets(who)
    return all(now.get(kind, 0) > count + 100 for kind, count in before.items())
