"""Hosts whose clocks are minutes apart: players find an SFU all the same, and the log names the clock."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest

import player
from localfleet.fleet import Fleet, FleetSpec
from rehearse.shell.chaos.clocks import environments
from shared.errors import BadSetting
from shared.tokens import PlayerClaims, issue

pytestmark = pytest.mark.timeout(120)
WITHIN_S = 40.0
OFF_S = 150.0


def wrong(**clocks: float) -> dict[str, dict[str, str]]:
    try:
        return environments({name.replace("_", "-"): off for name, off in clocks.items()})
    except BadSetting as error:
        pytest.skip(str(error))


async def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not holds():
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(0.05)


def token(fleet: Fleet, identity: str) -> str:
    claims = PlayerClaims(room="clocks", identity=identity)
    return issue(claims, secret=fleet.secret, now_at=time.time(), ttl_s=600)


async def test_an_sfu_that_is_behind_is_tolerated_and_one_that_is_ahead_names_the_clock() -> None:
    """The one ahead takes every token for expired; players go elsewhere as soon as there is another."""
    refused: list[player.PlayerEvent] = []
    heard: set[str] = set()
    async with Fleet(FleetSpec(routers=1, sfus=1), clocks=wrong(sfu_1=OFF_S, sfu_2=-OFF_S)) as fleet:
        urls = fleet.router_urls()
        async with player.join(urls, token(fleet, "ann"), on_event=refused.append) as ann:
            await ann.publish("audio")  # silence, from the library itself
            await until(lambda: any(isinstance(event, player.LinkFailed) for event in refused))
            assert ann.sfu == ""
            await fleet.add_sfu("sfu-2")
            async with player.join(urls, token(fleet, "bob")) as bob:
                await bob.publish("audio")
                for me in (ann, bob):
                    me.on_frame(lambda frame: heard.add(frame.publication.player))
                    await me.settled(timeout_s=WITHIN_S)
                await until(lambda: heard == {ann.session, bob.session})
                assert (ann.sfu, bob.sfu) == ("sfu-2", "sfu-2")
        log = (fleet.logs / "sfu-1.log").read_text()
    assert "s ago by the clock of this host" in log
