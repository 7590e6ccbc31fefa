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


def check_none_lost(report: dict[str, object]) -> None:
    """What holds on any machine, however busy; the bounds on gaps are for `sluice rehearse` on a quiet one."""
    assert report["failed_connections"] == 0, report["cut"]
    assert report["audio_gap_ms_max"] is not None
    assert set(report["sfu_exit_codes"]) == {0}  # type: ignore[call-overload]
    assert not [cut for cut in report["cut"] if "silent" not in cut and "stood still" not in cut]  # type: ignore[attr-defined]


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


@pytest.mark.parametrize("server", ["redis"], indirect=True)
async def test_a_roll_replaces_every_sfu_and_evicts_no_player(server: list[str]) -> None:
    _, report, _ = await rehearse("roll", "--bots", "6", "--rooms", "2", *server)
    check_none_lost(report)
    assert report["sfus_ended"] == ["sfu-1", "sfu-2", "sfu-3"]
    assert (report["players_stayed"], report["players_evicted"]) == (0, 0)
    assert report["players_moved"] != 0
