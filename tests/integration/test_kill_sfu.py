"""Players of an SFU that is killed are told, and are back elsewhere."""

from __future__ import annotations

import signal
import time

import pytest

from localfleet.config import FleetSize
from rehearse.config import CrowdSize
from rehearse.core.rehearsal import REJOIN_BOUND_S, RehearsalKind
from rehearse.shell.rehearsal import staged
from rehearse.shell.stall import StallMeter

pytestmark = pytest.mark.timeout(240)


async def test_players_of_a_killed_sfu_rejoin_elsewhere() -> None:
    async with (
        staged(RehearsalKind.EXIT, size=FleetSize(sfus=2), crowd=CrowdSize(bots=4, rooms=1, seed=2)) as stage,
        StallMeter() as stall,
    ):
        sfu = stage.fullest_sfu()
        ending = stage.begin(sfu, at=time.monotonic())
        assert len(ending.on_it) == 4
        ending.began = ending.ordered = stage.fleet.signal_sfu(sfu, signal.SIGKILL)
        assert await stage.until(lambda: not ending.left_behind, within_s=60), f"{ending.left_behind} did not rejoin"
        assert max(ending.rejoined.values()) - ending.began <= stall.forgive(REJOIN_BOUND_S)
        assert stage.view.on(sfu) == set()
        assert (await stage.fleet.sfus[sfu].child.wait(10)) == -signal.SIGKILL
        hearing = await stage.until(lambda: stage.view.all_hear(4), within_s=60)
        assert hearing, stage.view.missing(4)
