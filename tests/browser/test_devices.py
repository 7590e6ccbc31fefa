"""A microphone that vanishes, on a page with Chromium's own fake devices: nothing dead is pretended to be live."""

from __future__ import annotations

import secrets

import pytest
from playwright.async_api import BrowserContext

from localfleet.fleet import Fleet
from tests.browser.room import Person, until

pytestmark = pytest.mark.asyncio(loop_scope="session")

KEEP_TRACKS = """
    window.opened = [];
    window.hasDevices = true;
    const real = navigator.mediaDevices?.getUserMedia.bind(navigator.mediaDevices);
    if (real) navigator.mediaDevices.getUserMedia = async (wanted) => {
      if (!window.hasDevices) throw new DOMException("none", "NotFoundError");
      const stream = await real(wanted);
      window.opened.push(...stream.getTracks());
      return stream;
    };
"""
VANISH = """(kind) => {
    const track = opened.filter((each) => each.kind === kind && each.readyState === "live").at(-1);
    track.stop();
    track.dispatchEvent(new Event("ended")); // a browser says so when the device is pulled out
}"""


async def kinds_of(person: Person) -> list[str]:
    """The publications of others that the page shows."""
    return sorted(each["kind"] for each in (await person.state())["publications"])


async def test_a_microphone_that_vanishes_is_replaced_or_unpublished_and_comes_back(
    browser: BrowserContext, live: Fleet
) -> None:
    room = f"devices-{secrets.token_hex(4)}"
    bob = await Person.join(browser, live.page, room=room, name="Bob", media="none")
    await browser.add_init_script(KEEP_TRACKS)
    ada = await Person.join(browser, live.page, room=room, name="Ada", media="camera")
    await bob.sees_and_hears()
    shown = {each.publication for each in await bob.received()}
    await ada.page.evaluate(VANISH, "audio")

    async def says(words: str) -> bool:
        return words in await ada.page.inner_text("#trouble")

    await until(lambda: says("is used instead"), "the page names the microphone that is used now")
    packets = max(each.packets for each in await bob.received() if each.kind == "audio")
    await bob.sees_and_hears(packets=packets + 50)
    assert {each.publication for each in await bob.received()} == shown, "the publications are the same"

    await ada.page.evaluate("window.hasDevices = false")
    await ada.page.evaluate(VANISH, "audio")
    await until(lambda: says("there is no other"), "the page says that there is no microphone")
    assert await ada.page.is_hidden("#toggle-audio")

    async def only_the_picture() -> bool:
        return await kinds_of(bob) == ["video"]

    await until(only_the_picture, "what is dead is no publication any more")
    await ada.page.evaluate("window.hasDevices = true")
    await ada.page.evaluate("navigator.mediaDevices.dispatchEvent(new Event('devicechange'))")
    await until(lambda: says("is used now"), "the page says that the microphone is back")
    await bob.sees_and_hears()
    assert ada.problems == bob.problems == []


async def test_sound_and_picture_are_switched_off_and_on_and_stay_published(
    browser: BrowserContext, live: Fleet
) -> None:
    room = f"switches-{secrets.token_hex(4)}"
    ada = await Person.join(browser, live.page, room=room, name="Ada")
    bob = await Person.join(browser, live.page, room=room, name="Bob", media="none")
    await bob.sees_and_hears()
    published = (await ada.state())["published"]
    for kind, off, on in (("audio", "Unmute", "Mute"), ("video", "Start picture", "Stop picture")):
        button = ada.page.locator(f"#toggle-{kind}")
        await button.click()
        assert await button.inner_text() == off
        await button.click()
        assert await button.inner_text() == on
    assert (await ada.state())["published"] == published
    frames = max(each.frames_decoded for each in await bob.received())
    await bob.sees_and_hears(frames=frames + 20)
    assert await bob.page.is_hidden("#toggle-audio"), "Bob sends nothing that he could switch off"
    assert "you would move at once" in await ada.page.inner_text("#presence-means")
    await ada.page.locator("[data-presence=in_ambient_meeting]").check()
    await until(lambda: stays(ada), "the page says what the rule makes of the boxes")
    assert ada.problems == bob.problems == []


async def stays(person: Person) -> bool:
    return "you would stay" in await person.page.inner_text("#presence-means")
