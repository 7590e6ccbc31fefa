"""Redis may go and come back: calls go on, and what was decided meanwhile reaches everybody after."""

from __future__ import annotations

import asyncio
import signal
import time

import pytest

from localfleet.config import FleetSize
from rehearse.config import CrowdSize
from rehearse.core.rehearsal import RehearsalKind
from rehearse.shell.rehearsal import staged
from rehearse.shell.stall import StallMeter

pytestmark = pytest.mark.timeout(240)
SILENCE_S = 2.0
OUTAGE_S = 5.0
"""Longer than an SFU may go unheard of (3 s) and than its record is believed for placement."""


async def test_calls_outlive_redis_and_a_cordon_made_meanwhile_reaches_everybody_after() -> None:
    async with (
        staged(RehearsalKind.DRAIN, size=FleetSize(sfus=2), crowd=CrowdSize(bots=4, rooms=1, seed=2)) as stage,
        StallMeter() as stall,
    ):
        assert stage.fleet.redis is not None
        assert {bot.router for bot in stage.view.bots.values()} == {"router-1", "router-2"}
        await stage.crowd.stay_all()
        await stage.fleet.redis.stop()
        sfu = stage.fullest_sfu()
        ending = stage.begin(sfu, at=time.monotonic())
        stage.fleet.signal_sfu(sfu, signal.SIGTERM)
        await asyncio.sleep(OUTAGE_S)
        told_meanwhile = set(ending.told)
        await stage.fleet.redis.start()
        assert await stage.until(lambda: not ending.never_told, within_s=30), f"{ending.never_told} were never told"
        # With one link per SFU, only one router could know before Redis was back.
        assert 0 < len(told_meanwhile) < 4
        assert stage.view.on(sfu) == ending.on_it, "a player was moved or cut"
        gaps, failures = await stage.crowd.measured()
        assert stage.crowd.report is not None
        counts = stage.crowd.report["counts"]
        assert (failures, counts["evictions"], counts["resumes"]) == ([], 0, 0)
        assert gaps.audio_ms is not None
        assert gaps.audio_ms < stall.forgive(SILENCE_S) * 1000
