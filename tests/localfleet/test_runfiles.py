"""Run files: private, and only believed while their fleet runs."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import msgspec
import pytest

from localfleet import runfiles
from localfleet.runfiles import RunFile
from shared.errors import BadSetting
from shared.host.state import state_directory


def made(fleet: str, *, pid: int | None = None) -> RunFile:
    pid = os.getpid() if pid is None else pid
    started = runfiles.started_ticks(pid)
    return RunFile(
        fleet=fleet, redis="redis://h", secret="s" * 16, page="http://h/", pid=pid, pid_started=max(started, 0)
    )


def test_a_run_file_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    path = runfiles.write(made("a"), where=tmp_path / "sluice")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert runfiles.read(path) == made("a")


def test_the_only_running_fleet_needs_no_name(tmp_path: Path) -> None:
    runfiles.write(made("a"), where=tmp_path)
    assert runfiles.choose("", where=tmp_path) == made("a")
    assert runfiles.choose("b", where=tmp_path) is None


def test_several_running_fleets_need_a_name(tmp_path: Path) -> None:
    for name in ("a", "b"):
        runfiles.write(made(name), where=tmp_path)
    with pytest.raises(BadSetting, match="a, b"):
        runfiles.choose("", where=tmp_path)
    assert runfiles.choose("b", where=tmp_path) == made("b")


def test_a_fleet_whose_supervisor_is_gone_is_not_chosen(tmp_path: Path) -> None:
    runfiles.write(msgspec.structs.replace(made("a"), pid=2**22 + 1), where=tmp_path)
    assert runfiles.choose("", where=tmp_path) is None


def test_a_later_process_with_the_same_id_is_not_the_supervisor(tmp_path: Path) -> None:
    runfiles.write(msgspec.structs.replace(made("a"), pid_started=1), where=tmp_path)
    assert runfiles.choose("a", where=tmp_path) is None


def test_a_damaged_run_file_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{")
    assert runfiles.running(where=tmp_path) == []


def test_removing_leaves_another_runs_file_alone(tmp_path: Path) -> None:
    path = runfiles.write(made("a"), where=tmp_path)
    runfiles.remove(msgspec.structs.replace(made("a"), pid=1), where=tmp_path)
    assert path.exists()
    runfiles.remove(made("a"), where=tmp_path)
    assert not path.exists()


def test_the_directory_follows_the_xdg_state_home() -> None:
    assert state_directory({"XDG_STATE_HOME": "/s"}) == Path("/s/sluice")
    assert state_directory({}) == Path.home() / ".local/state/sluice"


def test_a_fleets_name_is_held_from_before_its_start_until_its_end(tmp_path: Path) -> None:
    """Two that start at once would share logs and sockets; the run file comes too late to tell them apart."""
    with runfiles.claim("f", where=tmp_path):
        refused = pytest.raises(BadSetting, match="'f' runs here already, or is starting")
        with refused, runfiles.claim("f", where=tmp_path):
            pass
        with runfiles.claim("g", where=tmp_path):
            pass
    with runfiles.claim("f", where=tmp_path):
        assert runfiles.running(where=tmp_path) == []
