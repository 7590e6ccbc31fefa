"""A player of the room takes another's publication ids at the SFU that this one is to move to: the move goes on."""

from __future__ import annotations

import asyncio
import signal
import time

import pytest

from localfleet.fleet import Fleet, FleetSpec
from shared.messages.player import Failed
from shared.tokens import SfuClaims, issue
from tests.fakes.media_player import MediaPlayer
from tests.integration.test_bots_fleet import crowd, sfu_of, until

pytestmark = pytest.mark.timeout(180)


async def test_a_drain_is_not_pinned_by_one_who_took_the_ids_first() -> None:
    async with (
        Fleet(FleetSpec(routers=2, sfus=2)) as fleet,
        crowd(fleet, room="r", bots=2, video=False) as people,
    ):
        await until(lambda: people.hearing(1))
        old = await sfu_of(people)
        (new,) = (name for name in fleet.sfus if name != old)
        ids = [track.publication for bot in people.bots.bots for track in bot.player.publisher.tracks]
        mallory = MediaPlayer(f"{fleet.sfus[new].ws}/media", "mallory")
        claims = SfuClaims(sfu=new, room="r", player="mallory", identity="mallory")
        await mallory.enter(issue(claims, secret=fleet.secret, now_at=time.time(), ttl_s=60.0))
        await mallory.publish(audio=ids[0])
        fleet.signal_sfu(old, signal.SIGTERM)
        await until(lambda: len(people.told("moved", left=old)) == 2)
        assert (await mallory.wait(Failed)).publication == ids[0]
        await people.hear_more()
        assert (people.report().cut, people.report().counts.failed_connections) == ((), 0)
        await asyncio.wait_for(fleet.sfus[old].child.wait(), 40.0)
        assert fleet.sfus[old].child.exit_code == 0
        await mallory.close()
