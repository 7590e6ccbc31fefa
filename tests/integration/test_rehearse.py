"""Rehearsals as a user runs them, on the embedded server and on Redis itself."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys

import pytest

from tests.fakes.needed import need_installed

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def server(request: pytest.FixtureRequest) -> list[str]:
    """Flags for a server: `embedded` or `redis`."""
    if request.param == "embedded":
        return []
    found = shutil.which("redis-server")
    need_installed(found, "redis-server", "apt-get install redis-server")
    return ["--server", str(found)]


async def rehearse(kind: str, *more: str) -> tuple[int, dict[str, object], str]:
    """Run the command; its status, report and standard error."""
    command = [sys.executable, "-m", "cli.main", "rehearse", kind, "--json", *more]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe)
    out, err = await process.communicate()
    assert out, err.decode()
    return process.returncode or 0, json.loads(out), err.decode()


BUSY = ("silent", "stood still", "had a gap")


def check_none_lost(report: dict[str, object]) -> None:
    """What holds on any machine, however busy; the bounds on gaps are for `sluice rehearse` on a quiet one."""
    assert report["failed_connections"] == 0, report["cut"]
    assert report["audio_gap_ms_max"] is not None
    assert set(report["sfu_exit_codes"]) == {0}  # type: ignore[call-overload]
    cuts: list[str] = report["cut"]  # type: ignore[assignment]
    assert not [cut for cut in cuts if not any(words in cut for words in BUSY)]


@pytest.mark.parametrize("server", ["embedded", "redis"], indirect=True)
async def test_a_drain_moves_everybody_and_ends_with_status_0(server: list[str]) -> None:
    _, report, _ = await rehearse("drain", "--bots", "6", "--rooms", "2", *server)
    check_none_lost(report)
    assert report["players_moved"] != 0
    assert (report["players_stayed"], report["players_evicted"]) == (0, 0)
    assert (report["producers_at_exit"], report["consumers_at_exit"]) == (0, 0)


@pytest.mark.parametrize("server", ["embedded"], indirect=True)
async def test_a_forced_exit_is_told_and_rejoined_by_everybody(server: list[str]) -> None:
    _, report, _ = await rehearse("exit", "--bots", "6", "--rooms", "2", *server)
    check_none_lost(report)
    assert report["players_stayed"] == report["players_rejoined"] != 0
    assert report["players_moved"] == 0


def check_rolled(report: dict[str, object], *, sfus: int, kills: int) -> None:
    """D13: every SFU, nobody cut, no player moved more than twice."""
    check_none_lost(report)
    assert report["sfus_ended"] == [f"sfu-{number + 1}" for number in range(sfus)]
    assert (report["players_stayed"], report["players_evicted"]) == (0, 0)
    assert report["players_moved"] != 0
    assert 1 <= report["moves_per_player_max"] <= 2  # type: ignore[operator]
    assert report["interruptions"] == kills


@pytest.mark.slow
@pytest.mark.parametrize("server", ["redis"], indirect=True)
async def test_a_roll_whose_command_is_killed_replaces_every_sfu_and_evicts_nobody(server: list[str]) -> None:
    _, report, _ = await rehearse("roll", "--bots", "6", "--rooms", "2", "--kills", "1", *server)
    check_rolled(report, sfus=3, kills=1)


@pytest.mark.slow
async def test_a_roll_of_five_sfus_under_thirty_bots_killed_twice_moves_no_player_more_than_twice() -> None:
    _, report, _ = await rehearse("roll", "--sfus", "5", "--bots", "30", "--rooms", "8", "--kills", "2")
    check_rolled(report, sfus=5, kills=2)
