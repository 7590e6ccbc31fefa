"""An SFU that no player could reach takes none, as long as another one can be reached."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from localfleet.fleet import Fleet, FleetSpec
from shared.http_client import get_json
from tests.integration.test_bots_fleet import crowd, until

pytestmark = pytest.mark.timeout(180)
NOTHING_LISTENS = ("--no-machine-cpu", "--announced-udp-port", "9")
SOON_FULL = ("--no-machine-cpu", "--stream-ceiling", "16")
"""One room of four makes its load 0.75, which without the rule would send every further room to the other."""


async def test_players_are_not_sent_where_the_self_test_fails() -> None:
    async with Fleet(FleetSpec(routers=2, sfus=1, sfu_flags=SOON_FULL)) as fleet:
        fleet.spec = replace(fleet.spec, sfu_flags=NOTHING_LISTENS)
        broken = await fleet.add_sfu("sfu-2", wait=False)
        for router in fleet.routers:
            async with asyncio.timeout(60):
                while not ((await fleet.sfu_states(router)) or {}).get("sfu-2", {}).get("probe_failure"):  # noqa: ASYNC110 - it happens in another process
                    await asyncio.sleep(0.1)
        async with crowd(fleet, room="first", bots=4, video=False) as first:
            await until(lambda: first.hearing(3))
            async with crowd(fleet, room="r", bots=4, rooms=2, video=False, seed=6, name="late") as people:
                await until(lambda: people.hearing(1))
            # A router tells Redis of its placements with its next sync.
            async with asyncio.timeout(20):
                while len(placements := await _placements(fleet)) < 8:  # noqa: ASYNC110 - it happens in another process
                    await asyncio.sleep(0.2)
            assert {(one["sfu"], one["cause"]) for one in placements} == {("sfu-1", "join")}
            assert len(placements) == 8
        assert broken.child.running, "it stays, and says why it is no capacity"
        assert "UNREACHABLE" in broken.child.tail()


async def _placements(fleet: Fleet) -> list[dict[str, str]]:
    told = await get_json(fleet.session, f"{fleet.routers['router-1'].http}/api/placements")
    placements: list[dict[str, str]] = told["placements"]
    return placements
