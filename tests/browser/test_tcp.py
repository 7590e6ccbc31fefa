"""A network that lets no UDP through: people see and hear each other over ICE-TCP, also when that begins in a call."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator

import aiohttp
import pytest
import pytest_asyncio
from playwright.async_api import BrowserContext

from client_sim.core.impairment import Impairment
from tests.browser.room import Person, until
from tests.fakes.road import PERFECT, Road, open_road

pytestmark = pytest.mark.asyncio(loop_scope="session")

NOTHING = Impairment(loss=1.0)
TCP_IN_USE = """async () => {
    const open = openedPeers.filter((each) => each.connectionState === "connected");
    const found = [];
    for (const peer of open) {
        const stats = [...(await peer.getStats()).values()];
        const transport = stats.find((each) => each.type === "transport");
        const pair = stats.find((each) => each.id === transport?.selectedCandidatePairId);
        found.push(stats.find((each) => each.id === pair?.remoteCandidateId)?.protocol);
    }
    return found;
}"""


@pytest_asyncio.fixture(loop_scope="session")
async def road() -> AsyncIterator[Road]:
    async with open_road(seed=5, tcp=True) as opened:
        await until(lambda: metric(opened, "sluice_sfu_tcp_reachable 1.0"), "TCP is announced")
        yield opened


async def metric(road: Road, line: str) -> bool:
    async with aiohttp.ClientSession() as session, session.get(f"{road.sfu_http}/metrics") as response:
        return line in await response.text()


async def protocols(person: Person) -> list[str]:
    found: list[str] = await person.page.evaluate(TCP_IN_USE)
    return found


async def pair(browser: BrowserContext, road: Road) -> tuple[Person, Person]:
    room = f"tcp-{secrets.token_hex(4)}"
    ada = await Person.join(browser, road.fleet.page, room=room, name="Ada")
    bob = await Person.join(browser, road.fleet.page, room=room, name="Bob")
    for person in (ada, bob):
        await person.sees_and_hears()
    return ada, bob


async def test_a_call_without_any_udp(browser: BrowserContext, road: Road) -> None:
    road.proxy.impair(up=NOTHING, down=NOTHING)
    ada, bob = await pair(browser, road)
    for person in (ada, bob):
        await person.sees_and_hears(frames=60, packets=120)
        assert await protocols(person) == ["tcp", "tcp"]
        assert person.problems == []
    counters = await road.counters()
    assert counters["tcp_connections"] >= 4, "a browser may keep more than one for each of its connections"
    drops = counters.drops
    assert not {reason for reason in drops if reason.startswith("stream-") and drops[reason]}


async def test_udp_is_preferred_and_a_call_outlives_its_end(browser: BrowserContext, road: Road) -> None:
    road.proxy.impair(up=PERFECT, down=PERFECT)
    ada, bob = await pair(browser, road)
    for person in (ada, bob):
        await until(lambda person=person: only_udp(person), "UDP is in use")  # type: ignore[misc]
    road.proxy.impair(up=NOTHING, down=NOTHING)
    for person in (ada, bob):
        await until(lambda person=person: only_tcp(person), "TCP is in use")  # type: ignore[misc]
        await person.sees_and_hears(frames=60, packets=120)


async def only_udp(person: Person) -> bool:
    return await protocols(person) == ["udp", "udp"]


async def only_tcp(person: Person) -> bool:
    return set(await protocols(person)) == {"tcp"}
