"""Transport-wide congestion control with a real browser: its probing is answered, and it answers ours."""

from __future__ import annotations

import secrets
from typing import Any

import aiohttp
import pytest
from playwright.async_api import BrowserContext

from localfleet.fleet import Fleet
from tests.browser.conftest import CAP_KBPS
from tests.browser.room import Person, until

pytestmark = pytest.mark.asyncio(loop_scope="session")

PUBLISH_SIMULCAST = """() => {
    const canvas = Object.assign(document.createElement("canvas"), { width: 1280, height: 720 });
    const context = canvas.getContext("2d", { alpha: false });
    setInterval(() => {
      context.fillStyle = `hsl(${Math.random() * 360} 60% 50%)`;
      context.fillRect(Math.random() * 1280, Math.random() * 720, 300, 200);
    }, 60);
    const layer = (rid, scaleResolutionDownBy, maxBitrate) => ({ rid, scaleResolutionDownBy, maxBitrate });
    sluice.publish(canvas.captureStream(15).getVideoTracks()[0], {
      encodings: [layer("l", 4, 150_000), layer("m", 2, 500_000), layer("h", 1, 1_500_000)],
    });
}"""
SENDING = """async () => {
    const told = { frames: {}, estimate: 0, negotiated: false };
    for (const connection of openedPeers) {
      const stats = [...(await connection.getStats()).values()];
      const layers = stats.filter(({ type, rid }) => type === "outbound-rtp" && rid);
      if (!layers.length) continue;
      for (const { rid, framesEncoded } of layers) told.frames[rid] = framesEncoded ?? 0;
      told.estimate = stats.find(({ type, nominated }) => type === "candidate-pair" && nominated)
        ?.availableOutgoingBitrate ?? 0;
      told.negotiated = connection.remoteDescription.sdp.includes("transport-cc");
    }
    return told;
}"""
START_BPS = 300_000
"""What Chromium begins with; nothing but feedback takes it further."""


async def feedbacks(live: Fleet) -> dict[str, float]:
    """Transport-cc feedback of all SFUs together, `sent` and `received`."""
    total = {"sent": 0.0, "received": 0.0}
    async with aiohttp.ClientSession() as session:
        for program in live.sfus.values():
            if not program.child.running:
                continue
            async with session.get(f"{program.http}/metrics") as answer:
                for line in (await answer.text()).splitlines():
                    for way in total:
                        if line.startswith(f"sluice_sfu_media_feedbacks_{way}_total "):
                            total[way] += float(line.split()[1])
    return total


async def test_probing_is_answered_and_viewers_answer_ours(browser: BrowserContext, live: Fleet) -> None:
    before = await feedbacks(live)
    room = f"probe-{secrets.token_hex(4)}"
    ada = await Person.join(browser, live.page, room=room, name="Ada", media="none")
    bob = await Person.join(browser, live.page, room=room, name="Bob", media="none")
    await ada.page.evaluate(PUBLISH_SIMULCAST)

    async def highest_layer() -> dict[str, Any] | None:
        sending: dict[str, Any] = await ada.page.evaluate(SENDING)
        # Measured by our feedback: what is told by REMB alone goes to the cap and stays there.
        measured = 2 * START_BPS < sending["estimate"] < 700 * CAP_KBPS
        return sending if sending["frames"].get("h", 0) >= 2 and measured else None

    sending = await until(highest_layer, "the highest layer is sent, within a measured estimate")
    assert sending["negotiated"]

    async def bob_sees() -> bool:
        return any(each.kind == "video" and each.frames_decoded >= 2 for each in await bob.received())

    await until(bob_sees, "Bob sees it")

    async def both_ways() -> bool:
        now = await feedbacks(live)
        return all(now[way] > before[way] + 3 for way in now)

    await until(both_ways, "feedback goes both ways")
    assert ada.problems == bob.problems == []
