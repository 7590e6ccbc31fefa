"""Everything stands still for ten seconds, as on a machine without CPU for us: nothing that was only late is dead."""

from __future__ import annotations

import asyncio
import signal
import time

import pytest

from localfleet.config import FleetSize
from localfleet.fleet import Fleet
from rehearse.config import CrowdSize
from rehearse.core.rehearsal import RehearsalKind
from rehearse.shell.rehearsal import staged
from rehearse.shell.stage import Stage

pytestmark = pytest.mark.timeout(240)
STALL_S = 10.0
STAGGER_S = 1.5
"""Who runs again first must not take those that do not yet for dead."""
AFTER_S = 12.0
"""Longer than any time-out that might still run out after the stall, but for consent, which ends within the stall."""


async def test_after_ten_seconds_without_cpu_no_player_rejoins_and_nothing_is_declared_dead() -> None:
    async with staged(RehearsalKind.DRAIN, size=FleetSize(), crowd=CrowdSize(bots=4, rooms=2, seed=3)) as stage:
        home = {bot.bot: bot.sfu for bot in stage.view.bots.values()}
        await _stall(stage.fleet)
        await _calm(stage)
        assert {bot.bot: bot.sfu for bot in stage.view.bots.values()} == home
        _, failures = await stage.crowd.measured()
        assert (failures, stage.view.evicted) == ([], [])
        report = stage.crowd.report
        assert report is not None
        assert (report["counts"]["resumes"], report["counts"]["moves"]) == (0, 0)
        logs = "".join(path.read_text() for path in stage.fleet.logs.glob("*.log"))
        for word in ("lost sfu=", "router link broke", "nothing heard", "consent", "keepalive"):
            assert word not in logs, word
        programs = [*stage.fleet.routers.values(), *stage.fleet.sfus.values()]
        assert all(program.child.running for program in programs)


async def _stall(fleet: Fleet) -> None:
    """All get no CPU for the same time, and get it again one group after another."""
    routers = [program.child for program in fleet.routers.values()]
    sfus = [program.child for program in fleet.sfus.values()]
    groups = (routers, sfus, list(fleet.others.values()))
    for group in groups:
        for child in group:
            child.send_signal(signal.SIGSTOP)
    await asyncio.sleep(STALL_S)
    for group in groups:
        for child in group:
            child.send_signal(signal.SIGCONT)
        await asyncio.sleep(STAGGER_S)


async def _calm(stage: Stage) -> None:
    """Let time-outs run out, and see that all are heard again."""
    until = time.monotonic() + AFTER_S
    while time.monotonic() < until:
        await stage.crowd.next_word(within_s=0.5)
