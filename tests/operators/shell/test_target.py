"""Which fleet a command acts on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from localfleet import runfiles
from operators.config import Where
from operators.errors import NoFleet
from operators.shell.target import Target, find_secret, find_target
from shared.errors import BadSetting


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A directory with the run file of one running fleet, `here`."""
    run = runfiles.RunFile(
        fleet="here",
        redis="redis://here",
        secret="here-here-here-here-here-here-here",
        page="http://h/",
        pid=os.getpid(),
        pid_started=runfiles.started_ticks(os.getpid()),
    )
    runfiles.write(run, where=tmp_path)
    return tmp_path


def test_a_redis_that_is_named_wins_over_the_fleet_here(runs: Path) -> None:
    assert find_target(Where(redis="redis://x"), runs=runs) == Target(redis="redis://x", fleet="sluice")
    assert find_target(Where(redis="redis://x", fleet="f"), runs=runs) == Target(redis="redis://x", fleet="f")


def test_the_fleet_here_needs_no_flags(runs: Path) -> None:
    assert find_target(Where(), runs=runs) == Target(redis="redis://here", fleet="here")


def test_without_any_fleet_the_error_names_the_way_to_one(tmp_path: Path, runs: Path) -> None:
    with pytest.raises(NoFleet, match="sluice up"):
        find_target(Where(), runs=tmp_path / "none")
    with pytest.raises(NoFleet, match="'there'"):
        find_target(Where(fleet="there"), runs=runs)


def test_a_secret_comes_from_the_flag_or_the_fleet_here(runs: Path) -> None:
    assert find_secret(Where(), runs=runs) == "here-here-here-here-here-here-here"
    assert find_secret(Where(secret="x" * 32), runs=runs) == "x" * 32
    with pytest.raises(BadSetting, match="32 bytes"):
        find_secret(Where(secret="short"), runs=runs)


def test_the_secret_of_the_fleet_here_is_not_used_for_another_redis(runs: Path) -> None:
    with pytest.raises(BadSetting, match="SLUICE_SECRET"):
        find_secret(Where(redis="redis://elsewhere"), runs=runs)
