"""A router that is killed ends no call."""

from __future__ import annotations

import signal

import pytest

from localfleet.config import FleetSize
from rehearse.config import CrowdSize
from rehearse.core.rehearsal import RehearsalKind
from rehearse.shell.rehearsal import staged
from rehearse.shell.stall import StallMeter

pytestmark = pytest.mark.timeout(240)
SILENCE_S = 2.0
"""Media that depended on the router would be silent until the player is assigned again, or for good."""


async def test_players_of_a_killed_router_resume_on_the_other_and_media_goes_on() -> None:
    async with (
        staged(RehearsalKind.DRAIN, size=FleetSize(sfus=2), crowd=CrowdSize(bots=4, rooms=1, seed=2)) as stage,
        StallMeter() as stall,
    ):
        victims = {bot.bot for bot in stage.view.bots.values() if bot.router == "router-1"}
        assert victims, "no bot is on router-1"
        stage.fleet.routers["router-1"].child.send_signal(signal.SIGKILL)

        def resumed() -> bool:
            return all(stage.view.bots[bot].router == "router-2" and stage.view.bots[bot].resumes for bot in victims)

        assert await stage.until(resumed, within_s=25), f"{victims} did not resume within the window"
        gaps, failures = await stage.crowd.measured()
        assert stage.crowd.report is not None
        counts = stage.crowd.report["counts"]
        assert (failures, counts["evictions"], counts["moves"]) == ([], 0, 0)
        assert gaps.audio_ms is not None
        assert gaps.audio_ms < stall.forgive(SILENCE_S) * 1000
