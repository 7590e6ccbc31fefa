"""A call over a bad network: 3 % loss, 20 ms of jitter and reordering, in both directions of both legs."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import BrowserContext

from rehearse.shell.stall import StallMeter
from tests.browser.room import Person, until
from tests.fakes.road import Road, fates, open_road

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]

FRAMES = 100
"""Frames of one look at the picture: four seconds."""
LOOKS, SMOOTH_LOOKS = 10, 3
"""Most looks, and how many in a row must be without a freeze. A quiet machine has none in forty looks; one on which
others work too makes pauses of its own, and Chromium calls 150 ms beyond the usual a freeze."""
LONGEST_S = 0.6
"""Frozen in a look at most."""
CALM_MS = 100.0
"""A machine that keeps an idle process waiting longer than this may freeze any picture for any time."""


@pytest_asyncio.fixture(loop_scope="session")
async def road() -> AsyncIterator[Road]:
    async with open_road(seed=7) as opened:
        yield opened


@dataclass(frozen=True)
class Look:
    """What Bob's browser counted during some frames, and how long the machine kept an idle process waiting then."""

    freezes: int
    frozen_s: float
    stall_ms: float

    @property
    def smooth(self) -> bool:
        return self.freezes == 0 and self.frozen_s == 0

    @property
    def calm(self) -> bool:
        return self.stall_ms < CALM_MS


async def one_of(person: Person, way: str, kind: str) -> dict[str, Any]:
    """The page's one report of that way (`inbound-rtp`) and kind."""
    (report,) = [each for each in await person.rtp_stats(way) if each["kind"] == kind]
    return report


async def picture(person: Person, *, frames: int = 0) -> dict[str, Any]:
    """What the browser counts of the picture it gets, once it has decoded that many more frames."""
    before = await one_of(person, "inbound-rtp", "video")

    async def report() -> dict[str, Any] | None:
        now = await one_of(person, "inbound-rtp", "video")
        return now if now["framesDecoded"] >= before["framesDecoded"] + frames else None

    found: dict[str, Any] = await until(report, f"{person.name}'s picture goes on")
    return found


async def look(person: Person) -> Look:
    async with StallMeter() as stall:
        before = await picture(person)
        after = await picture(person, frames=FRAMES)
    return Look(
        after["freezeCount"] - before["freezeCount"],
        after["totalFreezesDuration"] - before["totalFreezesDuration"],
        stall.worst_ms,
    )


def smooth(looks: list[Look]) -> bool:
    """The last few were all without a freeze."""
    return len(looks) >= SMOOTH_LOOKS and all(each.smooth for each in looks[-SMOOTH_LOOKS:])


async def test_a_call_over_loss_jitter_and_reordering_stays_smooth_and_does_not_storm(
    browser: BrowserContext, road: Road
) -> None:
    room = f"rain-{secrets.token_hex(4)}"
    ada = await Person.join(browser, road.fleet.page, room=room, name="Ada")
    bob = await Person.join(browser, road.fleet.page, room=room, name="Bob", media="none")
    await bob.sees_and_hears()
    answers = await bob.page.evaluate("openedPeers.map(({ localDescription }) => localDescription?.sdp ?? '').join('')")
    assert "rrtr" in answers, "Bob's browser does not tell its clock, and so never learns its round trip"
    road.turn_bad()
    # The first losses teach Bob's jitter buffer and the plane what kind of network this is.
    await picture(bob, frames=FRAMES)

    started, path = await road.counters(), road.proxy.counts()["up"]
    before = await picture(bob)
    heard = await one_of(bob, "inbound-rtp", "audio")
    looks: list[Look] = []
    while len(looks) < LOOKS and not smooth(looks):
        looks.append(await look(bob))
        assert looks[-1].frozen_s < LONGEST_S or not looks[-1].calm, looks
    counters, path_now = await road.counters() - started, road.proxy.counts()["up"]
    after = await picture(bob)
    heard_now = await one_of(bob, "inbound-rtp", "audio")

    assert smooth(looks), looks
    assert heard_now["packetsReceived"] - heard["packetsReceived"] > 200

    came_of = fates(counters)
    assert counters["nacks_received"] > 20
    assert counters["nacks_received"] == sum(came_of.values()), came_of
    assert came_of["resend-over-budget"] == 0, came_of
    # What was lost just before a key frame is no longer needed, and the plane stops asking for it.
    keyframes = after["keyFramesDecoded"] - before["keyFramesDecoded"]
    assert came_of["resend-unknown"] <= 5 * keyframes, came_of
    assert after["retransmittedBytesReceived"] - before["retransmittedBytesReceived"] < 0.5 * (
        after["bytesReceived"] - before["bytesReceived"]
    )

    lost, overtook = path_now.lost - path.lost, path_now.overtook - path.overtook
    assert lost > 20
    assert overtook > 100
    assert 0 < counters["nacks_sent"] < 1.5 * lost + 0.1 * overtook

    assert counters["plis_received"] <= len(looks)
    assert counters["plis_sent"] <= len(looks)
    assert keyframes <= len(looks)
    assert ada.problems == bob.problems == []
