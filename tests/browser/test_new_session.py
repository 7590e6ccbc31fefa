"""A session that can't be resumed: the page joins again, and what its old links carry goes on until new ones do."""

from __future__ import annotations

import pytest
from playwright.async_api import BrowserContext

from localfleet.fleet import Fleet
from tests.browser.room import Person, until
from tests.browser.test_call import pair

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

FORGET = """() => {
    const send = WebSocket.prototype.send;
    WebSocket.prototype.send = function (frame) {
        const message = JSON.parse(frame);
        if (message.type === "resume") message.resume_token = "forgotten";
        return send.call(this, JSON.stringify(message));
    };
}"""
"""From now on no router knows the page's session, as after the loss of the store."""


async def test_a_new_session_takes_over_without_a_cut(browser: BrowserContext, live: Fleet) -> None:
    ada, bob = await pair(browser, live)
    before = {person: await person.state() for person in (ada, bob)}
    for person in (ada, bob):
        await person.page.evaluate(FORGET)
        assert await person.break_sockets("/player") == 1

    async def moved_over(person: Person) -> bool:
        state = await person.state()
        others = [each for each in state["publications"] if not each["lost"] and each["switchingTo"] is None]
        settled = state["move"]["phase"] == "settled" and not state["move"]["leaving"]
        return bool(state["player"] != before[person]["player"] and settled and len(others) == 2)

    for person in (ada, bob):
        await until(lambda person=person: moved_over(person), f"{person.name} is in a session of its own")  # type: ignore[misc]
        frames = max(each.frames_decoded for each in await person.received())
        await person.sees_and_hears(frames=frames + 30)
    for person in (ada, bob):
        state = await person.state()
        for each in state["switches"]:
            assert each["cut"] is False, each
        print(person.name, [(each["kind"], round(each["gapMs"])) for each in state["switches"]])
        assert person.problems == []
