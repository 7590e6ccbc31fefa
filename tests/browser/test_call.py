"""Two people on different routers see and hear each other, and a drain moves both without a gap."""

from __future__ import annotations

import signal

import pytest
from playwright.async_api import BrowserContext

from control.shell.fleet import Fleet
from tests.browser.room import Person, Watch, until

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

STOOD_STILL_S = 3.0
"""The machine may be busy with other tests; a copy that is opened only when the old one has gone takes longer."""
DRAINED_WITHIN_S = 45.0


async def pair(browser: BrowserContext, live: Fleet) -> tuple[Person, Person]:
    """Ada on one router and Bob on the other, in one room."""
    one, other = live.router_urls()
    ada = await Person.join(browser, live.page, room="tea", name="Ada", router=one)
    bob = await Person.join(browser, live.page, room="tea", name="Bob", router=other)
    await ada.sees_and_hears()
    await bob.sees_and_hears()
    return ada, bob


async def test_two_routers_one_room(browser: BrowserContext, live: Fleet) -> None:
    ada, bob = await pair(browser, live)
    assert (await ada.state())["router"] != (await bob.state())["router"]
    before = {each.copy: each for person in (ada, bob) for each in await person.received()}
    await ada.sees_and_hears(frames=60, packets=120)
    await bob.sees_and_hears(frames=60, packets=120)
    after = {each.copy: each for person in (ada, bob) for each in await person.received()}
    assert before.keys() == after.keys(), "a quiet call keeps its copies"
    assert ada.problems == bob.problems == []


async def test_a_drain_moves_both_without_a_gap(browser: BrowserContext, live: Fleet) -> None:
    ada, bob = await pair(browser, live)
    old = await ada.home()
    assert old is not None
    assert await bob.home() == old, "one room, one SFU"
    async with Watch(ada) as ada_sees, Watch(bob) as bob_sees:
        live.signal_sfu(old, signal.SIGTERM)
        for person in (ada, bob):
            await until(lambda person=person: moved_off(person, old), f"{person.name} has left {old}")  # type: ignore[misc]
        exit_code = await until(lambda: ended(live, old), f"{old} has ended", within_s=DRAINED_WITHIN_S)
        await ada.sees_and_hears(frames=30)
        await bob.sees_and_hears(frames=30)
    assert exit_code == "0"
    for watch in (ada_sees, bob_sees):
        assert watch.longest_s, "somebody's picture was watched"
        assert max(watch.longest_s.values()) < STOOD_STILL_S, watch.longest_s
    for person in (ada, bob):
        last = (await person.state())["lastMove"]
        assert last["left"] == old
        for kind in ("audioMs", "videoMs"):
            assert last[kind] is not None, last
            # Generous for a busy machine: a copy that is opened only after the old one went is silent for longer.
            assert last[kind] < 500, last
        shown = await person.page.text_content("#gap-audio")
        assert shown == f"{round(last['audioMs'])} ms", "the page says what the library measured"
        assert person.problems == []


async def moved_off(person: Person, old: str) -> bool:
    state = await person.state()
    return state["move"]["home"] not in (None, old) and not state["move"]["leaving"] and old not in state["links"]


async def ended(live: Fleet, sfu: str) -> str:
    code = live.sfus[sfu].child.exit_code
    return "" if code is None else str(code)


async def test_staying_is_a_choice_and_so_is_moving_now(browser: BrowserContext, live: Fleet) -> None:
    ada, bob = await pair(browser, live)
    for person in (ada, bob):
        await person.page.uncheck("[data-presence=at_desk]")
    old = await ada.home()
    assert old is not None
    await until(lambda: away(ada), "the presence has been told")
    live.signal_sfu(old, signal.SIGTERM)
    await ada.page.wait_for_selector("#notice:not([hidden])")
    await bob.page.wait_for_selector("#notice:not([hidden])")
    assert "away from the desk" in str(await ada.page.text_content("#notice-text"))

    await ada.page.click("#stay")
    await ada.page.check("[data-presence=at_desk]")  # the rule says yes now, the person said stay
    await bob.page.click("#move-now")
    await until(lambda: moved_off_or_watching(bob, old), "Bob has moved")
    assert await ada.home() == old
    assert live.sfus[old].child.running, "Ada is still there, so it goes on"
    await ada.sees_and_hears(frames=30)
    await bob.sees_and_hears(frames=30)

    await ada.page.click("#let-rule")
    await until(lambda: moved_off(ada, old), "Ada has moved once the rule may decide")
    assert await until(lambda: ended(live, old), f"{old} has ended", within_s=DRAINED_WITHIN_S) == "0"


async def away(person: Person) -> bool:
    return not (await person.state())["presence"]["at_desk"]


async def moved_off_or_watching(person: Person, old: str) -> bool:
    state = await person.state()
    return state["move"]["home"] not in (None, old) and not state["move"]["leaving"]
