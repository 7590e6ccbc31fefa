"""Two people on different routers see and hear each other, and a drain moves both without a gap."""

from __future__ import annotations

import secrets
import signal

import pytest
from playwright.async_api import BrowserContext

from localfleet.fleet import Fleet
from tests.browser.room import Person, until

pytestmark = pytest.mark.asyncio(loop_scope="session")

DRAINED_WITHIN_S = 60.0


async def pair(browser: BrowserContext, live: Fleet) -> tuple[Person, Person]:
    """Ada on one router and Bob on the other, in a room of their own. Both pages come from the first router."""
    one, other = [program.ws for program in live.routers.values() if program.child.running]
    room = f"tea-{secrets.token_hex(4)}"
    ada = await Person.join(browser, live.page, room=room, name="Ada", router=one)
    bob = await Person.join(browser, live.page, room=room, name="Bob", router=other)
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
    live.signal_sfu(old, signal.SIGTERM)
    for person in (ada, bob):
        await until(lambda person=person: moved_off(person, old), f"{person.name} has left {old}")  # type: ignore[misc]
    exit_code = await until(lambda: ended(live, old), f"{old} has ended", within_s=DRAINED_WITHIN_S)
    assert exit_code == "0"
    await ada.sees_and_hears(frames=30)
    await bob.sees_and_hears(frames=30)
    for person in (ada, bob):
        state = await person.state()
        last = state["lastMove"]
        assert last["left"] == old
        assert {each["kind"] for each in state["switches"]} == {"audio", "video"}
        for each in state["switches"]:
            # However slow the machine is: the old copy was still there when the new one was shown.
            assert each["cut"] is False, each
        for kind in ("audio", "video"):
            assert last[f"{kind}Ms"] is not None
            shown = await person.page.text_content(f"#gap-{kind}")
            assert shown == milliseconds(last[f"{kind}Ms"]), "the page says what the library measured"
        print(f"{person.name}: audio gap {last['audioMs']:.0f} ms, video gap {last['videoMs']:.0f} ms")
        assert person.problems == []


def milliseconds(gap_ms: float) -> str:
    """As the page writes it."""
    return f"{int(gap_ms + 0.5)} ms" if gap_ms < 9950 else f"{gap_ms / 1000:.1f} s"


async def moved_off(person: Person, old: str) -> bool:
    state = await person.state()
    return state["move"]["home"] not in (None, old) and not state["move"]["leaving"] and old not in state["links"]


async def ended(live: Fleet, sfu: str) -> str:
    code = live.sfus[sfu].child.exit_code
    return "" if code is None else str(code)


async def test_staying_is_a_choice_and_so_is_moving_now(browser: BrowserContext, live: Fleet) -> None:
    ada, bob = await pair(browser, live)
    for person in (ada, bob):
        await person.page.check("[data-presence=in_conversation]")
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
