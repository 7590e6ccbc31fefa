"""A whole scale-out and scale-in as users rehearse it: real fleet, controller and bots, time compressed (A11)."""

from __future__ import annotations

import asyncio
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from cli.main import INTERRUPTED
from control.shell.pools.proc import marked
from control.shell.pools.process import MARK
from tests.integration.test_rehearse import rehearse

pytestmark = pytest.mark.timeout(300)
GAPS = "no player hears a gap"
"""Judged on a quiet machine, where a user runs the command; here it only has to be measured."""


def what(report: dict[str, Any]) -> list[str]:
    """What happened, in order."""
    return [event["what"] for event in report["timeline"]["events"]]


async def test_load_brings_a_node_and_its_end_takes_one_and_no_player_is_cut() -> None:
    server = shutil.which("redis-server")
    more = ["--server", server] if server else []
    status, report, said = await rehearse("scale", "--sfus", "2", "--tick-s", "0.5", *more)
    broken = [each for promise in report["promises"] if promise["promise"] != GAPS for each in promise["broken"]]  # type: ignore[attr-defined]
    assert broken == [], said
    assert status == (0 if report["passed"] else 1)
    assert bool(report["logs"]) == (not report["passed"])
    shutil.rmtree(str(report["logs"] or "/nowhere"), ignore_errors=True)

    assert report["failed_connections"] == 0
    assert (report["players_moved"], report["players_stayed"], report["players_evicted"]) == (2, 0, 0)
    assert (report["streams_at_terminate"], report["egress_bps_at_terminate"]) == (0, 0)
    assert report["audio_gap_ms_max"] is not None
    assert report["video_gap_ms_max"] is not None

    story = ["launch", "healthy", "first-packet", "capacity", "first-room", "cordon", "skipped", "moved", "terminate"]
    told = what(report)
    assert [told.index(each) for each in story] == sorted(told.index(each) for each in story)
    assert report["launched"]
    assert report["terminated"]

    # One and the same run: all parts lead to a change, CPU alone never does.
    cpu: Any = report["cpu_alone"]
    full: Any = report["all_parts"]
    assert (full["changed"], cpu["changed"], cpu["hot_ticks"]) == ("scale-out", "", 0)
    assert 0 < cpu["peak"] < 0.65


async def test_a_rehearsal_that_is_ended_leaves_no_node_behind() -> None:
    command = [sys.executable, "-m", "cli.main", "rehearse", "scale", "--sfus", "2"]
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    assert process.stderr is not None
    place = ""
    async for line in process.stderr:
        if "scaling by" in line.decode():
            place = str(Path(line.decode().split()[-1]).parent)
            break
    assert len(nodes(place)) == 2
    process.send_signal(signal.SIGTERM)
    _, said = await process.communicate()
    assert process.returncode == INTERRUPTED, said.decode()
    assert nodes(place) == []
    assert not Path(place).exists()


def nodes(place: str) -> list[int]:
    """The processes of a pool whose state is kept below this directory."""
    return [pid for pid, mark in marked(MARK) if place and mark.startswith(f"{place}/")]
