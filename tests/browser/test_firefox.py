"""A call between Firefox and Chromium, through a drain: another browser's offers, answers and feedback (M1)."""

from __future__ import annotations

import signal

import pytest
from playwright.async_api import BrowserContext

from localfleet.fleet import Fleet, FleetSpec
from tests.browser.firefox import find_firefox, open_firefox
from tests.browser.network import Network
from tests.browser.room import Person, until

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_firefox_joins_sees_hears_and_moves(browser: BrowserContext) -> None:
    async with Network.made() as network, open_firefox(find_firefox(), network) as other:
        spec = FleetSpec(routers=1, sfus=2, host=network.ours, router_flags=("--dev-tokens",))
        async with Fleet(spec) as fleet:
            fox = await Person.join(other, fleet.page, room="fox", name="Fox")
            ada = await Person.join(browser, fleet.page, room="fox", name="Ada")
            for who in (fox, ada):
                await who.sees_and_hears(frames=30)

            home = await fox.home()
            assert home is not None
            fleet.signal_sfu(home, signal.SIGTERM)
            for who in (fox, ada):
                await until(lambda who=who: _has_moved(who, home), f"{who.name} moves off {home}")
                await who.sees_and_hears(frames=30)
            assert fox.problems == ada.problems == []


async def _has_moved(who: Person, old: str) -> bool:
    received = await who.received()
    return await who.home() not in (None, old) and len(received) == 2 and all(each.sfu != old for each in received)
