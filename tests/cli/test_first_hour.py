"""The first hour at the command line: commands find the fleet that runs here and say what is missing."""

from __future__ import annotations

import asyncio
import importlib.abc
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from cli.bots import find
from cli.environment import take_secret_file
from cli.main import run
from client_sim.config import BotsConfig
from localfleet import runfiles
from shared.errors import BadSetting
from shared.records import SfuState
from shared.store.store import Store
from shared.tokens import PlayerClaims, verify

SECRET = "0123456789abcdef0123456789abcdef"
ROOT = Path(__file__).parents[2]


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where run files are; no fleet runs here, whatever this machine is doing."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for name in ("SLUICE_SECRET", "SLUICE_REDIS", "SLUICE_FLEET", "SLUICE_ROUTERS", "SLUICE_ROOM"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "sluice"


def a_fleet(state: Path, name: str = "sluice", redis: str = "unix:///redis.sock") -> runfiles.RunFile:
    run_file = runfiles.RunFile(
        fleet=name,
        redis=redis,
        secret=SECRET,
        page="http://127.0.0.1:7080/",
        routers=tuple(runfiles.RouterAddress(router=each, ws=f"ws://{each}", http="") for each in ("r1:1", "r2:2")),
        pid=os.getpid(),
        pid_started=runfiles.started_ticks(os.getpid()),
    )
    runfiles.write(run_file, where=state)
    return run_file


def test_bots_join_the_fleet_that_runs_here(state: Path) -> None:
    a_fleet(state)
    found = find(BotsConfig(bots=6), fleet="")
    assert (found.routers, found.secret, found.bots) == (("ws://r1:1", "ws://r2:2"), SECRET, 6)


def test_bots_join_the_routers_that_are_named(state: Path) -> None:
    a_fleet(state)
    asked = BotsConfig(routers=("wss://a.example.org",), secret="x" * 32)
    assert find(asked, fleet="") == asked


def test_bots_ask_which_fleet_when_two_run_here(state: Path) -> None:
    a_fleet(state), a_fleet(state, "two")
    with pytest.raises(BadSetting, match="several fleets run here"):
        find(BotsConfig(), fleet="")
    assert find(BotsConfig(), fleet="two").routers


def test_without_a_fleet_bots_say_what_is_missing(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert find(BotsConfig(), fleet="").routers == ("ws://127.0.0.1:7000",)
    assert run(["bots"]) == 2
    assert "secret" in capsys.readouterr().err


def test_a_token_is_signed_with_the_secret_of_the_fleet_that_runs_here(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet = a_fleet(state)
    for more in ([], ["--redis", fleet.redis]):
        assert run(["token", "alice", *more]) == 0
        assert verify(PlayerClaims, capsys.readouterr().out.strip(), secret=SECRET, now_at=0).room == "demo"


def test_bots_token_and_page_propose_the_same_room() -> None:
    page = (ROOT / "web" / "index.html").read_text()
    assert f'name="room" required maxlength="128" autocomplete="off" value="{BotsConfig().room}"' in page
    assert f"SLUICE_ROOM:-{BotsConfig().room}}}" in (ROOT / "docker-compose.yml").read_text()


def test_an_option_of_several_values_takes_them_as_its_help_shows(
    state: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[BotsConfig] = []
    monkeypatch.setattr("cli.bots.bots_command", lambda config: asked.append(config) or 0)
    assert run(["bots", "--routers", "ws://a:1", "ws://b:2", "--bots", "3"]) == 0
    assert run(["bots", "--routers", "ws://a:1", "--routers", "ws://b:2", "--bots", "3"]) == 0
    assert [(each.routers, each.bots) for each in asked] == [(("ws://a:1", "ws://b:2"), 3)] * 2


def test_a_second_fleet_says_how_it_is_started(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with runfiles.claim("sluice", where=state):
        assert run(["up"]) == 2
    assert "`sluice up --fleet two` (`make up ARGS='--fleet two'`)" in " ".join(capsys.readouterr().err.split())


class Missing(importlib.abc.MetaPathFinder):
    """As if a package were not installed."""

    def __init__(self, package: str) -> None:
        self.package = package

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name.partition(".")[0] == self.package:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


@pytest.mark.parametrize(
    ("tokens", "package", "extra"),
    [
        (["bench", "join"], "playwright", "browser"),
        (["bots", "--secret", SECRET], "numpy", "bots"),
    ],
)
def test_a_command_without_its_optional_part_says_what_to_install(
    tokens: list[str],
    package: str,
    extra: str,
    state: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] in (package, "client_sim", "cli")]:
        if name not in ("cli", "cli.main", "cli.errors", "cli.output", "cli.environment"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr("sys.meta_path", [Missing(package), *sys.meta_path])
    monkeypatch.setenv("SLUICE_CHROMIUM", "/bin/true")
    assert run(tokens) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert f"needs {package}, which is not installed: pip install 'sluice[{extra}]'" in said


def test_exit_takes_an_sfu_as_its_siblings_do(
    redis_url: str, fleet: str, capsys: pytest.CaptureFixture[str], state: Path
) -> None:
    async def put() -> None:
        store = Store(redis_url, fleet=fleet)
        await store.put_sfu(SfuState(address="ws://b", sfu="sfu-2", incarnation=1, status="CORDONED"))
        await store.close()

    asyncio.run(put())
    where = ["--redis", redis_url, "--fleet", fleet, "--yes", "--no-wait", "--json"]
    assert run(["exit", "sfu-2", *where]) == 0
    assert json.loads(capsys.readouterr().out)["sfus"] == ["sfu-2"]
    assert run(["exit", "sfu-2", "--sfu", "sfu-2", *where]) == 2
    assert "exactly one of an SFU" in capsys.readouterr().err


def test_the_secret_may_be_a_file(
    state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "secret"
    monkeypatch.setenv("SLUICE_SECRET_FILE", str(file))
    assert run(["token", "alice"]) == 2
    assert f"SLUICE_SECRET_FILE: {file}: No such file" in capsys.readouterr().err
    environ = {"SLUICE_SECRET_FILE": str(file)}
    file.write_text(f"{SECRET}\n")
    take_secret_file(environ)
    assert environ["SLUICE_SECRET"] == SECRET
    take_secret_file(environ := {"SLUICE_SECRET_FILE": str(file), "SLUICE_SECRET": "x" * 32})
    assert environ["SLUICE_SECRET"] == "x" * 32, "what is said directly counts"
