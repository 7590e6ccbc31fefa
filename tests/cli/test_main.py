"""Exit statuses and sentences of the command line."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from cli.main import COMMANDS, run
from operators.core.since import time_words
from shared.errors import BadToken
from shared.placement_records import PlacementRecord
from shared.records import Drain, DrainReport, RouterRecord, SfuState
from shared.store.store import Store
from shared.tokens import OperatorClaims, PlayerClaims, verify

SECRET = "0123456789abcdef0123456789abcdef"


@pytest.fixture(autouse=True)
def nobody_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No fleet runs here, whatever this machine is doing."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for name in ("SLUICE_SECRET", "SLUICE_REDIS", "SLUICE_FLEET"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_has_a_help_page(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([command, "--help"]) == 0
    assert f"sluice {command}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        (["up"], "The programs' own settings"),
        (["rehearse"], "The exit status is 1 when a bot was cut"),
        (["bench", "relay"], "sluice bench relay fanout --find-knee"),
    ],
)
def test_a_commands_own_page_says_more_than_the_list(
    tokens: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*tokens, "--help"]) == 0
    assert words in " ".join(capsys.readouterr().out.split())


def test_the_list_of_commands_says_what_each_does_and_loads_none() -> None:
    asked = "from cli.main import run; run(['--help']); import sys; print('\\n'.join(sys.modules))"
    printed = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True).stdout
    told = " ".join(printed.split())
    for command, (target, words) in COMMANDS.items():
        assert f"│ {command} {words}" in told
        assert target.partition(":")[0] not in printed.splitlines()


def test_the_list_of_benchmarks_says_what_each_measures(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", "--help"]) == 0
    told = capsys.readouterr().out
    for words in ("choose  Time to", "join    Time from", "notify  Time from an SFU's", "relay   CPU per forwarded"):
        assert words in told


@pytest.mark.parametrize(
    ("tokens", "status", "sentence"),
    [
        (["nonsense"], 2, "nonsense"),
        (["bench", "choose", "--sfus", "0"], 2, "takes 1 to 16384 SFUs"),
        (["bench", "choose", "--choices", "-1"], 2, "and 1 to 1000000 choices"),
        (["explain", "\udcff"], 2, "\\udcff is not UTF-8"),
        (["token", "alice", "--room", "\udcff"], 2, "\\udcff is not UTF-8"),
        (["cordon"], 2, "SFU"),
        (["status"], 1, "sluice up"),
        (
            ["status", "--redis", "redis://:secret@127.0.0.1:1/0"],
            1,
            "answers at redis://127.0.0.1:1/0 (connection refused)",
        ),
        (["up", "--redis", "redis://127.0.0.1:1/0"], 1, "name another one with --redis or SLUICE_REDIS"),
        (["status", "--redis", "redis://nowhere.invalid/0"], 1, "answers at redis://nowhere.invalid/0 (no such host)"),
        (["status", "--redis", "unix:///nowhere.sock"], 1, "answers at unix:///nowhere.sock (no such socket)"),
        (["status", "--redis", "redis+sentinel://127.0.0.1:1/main"], 1, "(No master found for 'main')"),
        (["status", "--redis", "http://x"], 2, "redis"),
        (["exit"], 2, "exactly one"),
        (["exit", "--sfu", "a", "--all-cordoned"], 2, "exactly one"),
        (["token", "alice"], 2, "SLUICE_SECRET"),
        (["token", "alice", "--secret", "short"], 2, "32 bytes"),
        (["token", "", "--secret", SECRET], 2, "identity"),
        (["token", "x" * 129, "--secret", SECRET], 2, "128"),
        (["token", "alice", "--secret", SECRET, "--ttl-s", "nan"], 2, "--ttl-s: must be over 0"),
        (
            ["token", "alice", "--secret", SECRET, "--ttl-s", "1e300"],
            2,
            "--ttl-s: must be over 0 and at most 315360000",
        ),
        (["bench", "notify", "--joins-per-s", "nan"], 2, "--joins-per-s: must be over 0"),
        (["bench", "relay", "fanout", "--seconds", "nan"], 2, "--seconds: must be over 0"),
        (["bots", "--secret", SECRET, "--duration-s", "nan"], 2, "duration_s: must be at least 0"),
        (["bots", "--secret", SECRET, "--join-per-s", "nan"], 2, "join_per_s: must be over 0"),
        (["up", "--sfus=-1"], 2, "at least one"),
        (["up", "--fleet", "../x"], 2, "--fleet"),
        (["up", "--port", "99999"], 2, "--port: must be 0 to 65535"),
        (["up", "--port=-1"], 2, "--port: must be 0 to 65535"),
        (["up", "--host", "203.0.113.9"], 2, "--host: 203.0.113.9 is no address of this machine"),
        (["demo", "fleet", "--port", "99999"], 2, "--port: must be 0 to 65535"),
        (["rehearse", "drain", "--host", "localhost"], 2, "--host: 'localhost' is no IPv4 address"),
        (["rehearse", "scale", "--host", "0.0.0.0"], 2, "--host: players can't be sent to 0.0.0.0"),
        (["explain", "kitchen", "--last", "0"], 2, "--last: must be 1"),
        (["drains", "--last=-3"], 2, "--last: must be 1"),
        (["scaling", "--last", "0"], 2, "--last: must be 1"),
        (["rehearse", "drain", "--bots", "0"], 2, "--bots: must be at least 2"),
        (["rehearse", "drain", "--bots", "4", "--rooms", "3"], 2, "--rooms: must be 1 to 2"),
        (["up", "--sfus", "many"], 2, "many"),
        (["up", "--scaling", "/nowhere.toml"], 2, "/nowhere.toml: can't be read"),
        (["control"], 2, "--scaling"),
        (["scaling", "check", "/nowhere.toml"], 2, "/nowhere.toml: can't be read"),
        (["scaling", "--last", "many", "--redis", "redis://127.0.0.1:1/0"], 2, "many"),
    ],
)
def test_what_can_not_be_done_is_said_in_one_sentence(
    tokens: list[str], status: int, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tokens) == status
    captured = capsys.readouterr()
    assert sentence in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""


def test_a_taken_port_of_the_demo_is_said_in_one_sentence(capfd: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert run(["demo", "fleet", "--sfus", "1", "--players", "0", "--port", str(port)]) == 2
    captured = capfd.readouterr()
    assert f"sluice: --port: {port} is taken; give another one, or 0 for any free one" in captured.err
    assert "Traceback" not in captured.err


def test_what_the_system_refuses_is_said_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sluice").write_text("a file where a directory is wanted")
    assert run(["up"]) == 1
    captured = capsys.readouterr()
    assert "sluice: " in captured.err
    assert str(tmp_path / "sluice") in captured.err
    assert "Traceback" not in captured.err


@pytest.mark.parametrize("command", [["token", "ann"], ["bench", "--help"], ["sfu", "--help"]])
def test_a_reader_that_goes_away_is_no_error_to_talk_of(command: list[str]) -> None:
    """`sluice ... | head`."""
    reader, writer = os.pipe()
    os.close(reader)
    run_main = [sys.executable, "-c", "from cli.main import main; main()", *command]
    it = subprocess.run(run_main, stdout=writer, stderr=subprocess.PIPE, env={**os.environ, "SLUICE_SECRET": "x" * 40})
    os.close(writer)
    assert it.stderr == b""


def test_a_token_opens_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["token", "alice", "--room", "kitchen", "--no-publish", "--secret", SECRET, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    claims = verify(PlayerClaims, answer["token"], secret=SECRET, now_at=answer["expires_at"] - 1)
    assert claims == PlayerClaims(room="kitchen", identity="alice", name="alice", publish=False)


def test_an_operators_token_opens_the_fleet_page_and_no_room(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["token", "olga", "--operator", "--secret", SECRET, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    now_at = answer["expires_at"] - 1
    assert verify(OperatorClaims, answer["token"], secret=SECRET, now_at=now_at).operator == "olga"
    with pytest.raises(BadToken):
        verify(PlayerClaims, answer["token"], secret=SECRET, now_at=now_at)


def test_settings_come_from_the_environment_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLUICE_SECRET", SECRET)
    assert run(["token", "alice"]) == 0
    verify(PlayerClaims, capsys.readouterr().out.strip(), secret=SECRET, now_at=0)


async def put(redis_url: str, fleet: str) -> None:
    store = Store(redis_url, fleet=fleet)
    drain = Drain(by="kim", exit_when_empty=False)
    await store.put_sfu(SfuState(address="ws://a", sfu="a", incarnation=1, version="v1"))
    await store.put_sfu(SfuState(address="ws://b", sfu="b", incarnation=1, status="CORDONED", drain=drain))
    await store.push_drain_report(DrainReport(sfu="z", outcome="empty", to_exit_s=4.0))
    await store.close()


def test_scripts_read_status_and_drains_as_json(redis_url: str, fleet: str, capsys: pytest.CaptureFixture[str]) -> None:
    asyncio.run(put(redis_url, fleet))
    where = ["--redis", redis_url, "--fleet", fleet]
    assert run(["status", "--json", *where]) == 0
    status = json.loads(capsys.readouterr().out)
    assert [(row["sfu"], row["status"]) for row in status["sfus"]] == [("a", "ONLINE"), ("b", "CORDONED")]
    assert run(["drains", "--json", *where]) == 0
    assert [report["sfu"] for report in json.loads(capsys.readouterr().out)] == ["z"]


def test_histories_say_since_when_they_know(redis_url: str, fleet: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A Redis that was restarted has forgotten them, which must not read as "it never happened"."""

    async def lived() -> float | None:
        store = Store(redis_url, fleet=fleet)
        await store.put_router(RouterRecord(router="r1"))
        await store.push_placements([PlacementRecord(id="1", room="kitchen", sfu="a")])
        since_at = await store.known_since()
        await store.close()
        return since_at

    since_at = asyncio.run(lived())
    assert since_at is not None
    told = f"this Redis knows of nothing before {time_words(since_at)}"
    where = ["--redis", redis_url, "--fleet", fleet]
    for command in (["drains"], ["scaling"], ["explain", "kitchen"]):
        assert run([*command, *where]) == 0
        assert told in capsys.readouterr().out
    assert run(["explain", "cellar", *where]) == 1
    assert told in capsys.readouterr().err
    assert run(["drains", "--json", *where]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out) == []
    assert told in printed.err
    for command in (["scaling"], ["explain", "kitchen"]):
        assert run([*command, "--json", *where]) == 0
        assert json.loads(capsys.readouterr().out)["known_since_at"] == since_at


def test_a_fleet_without_a_controller_says_what_is_missing(
    redis_url: str, fleet: str, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--redis", redis_url, "--fleet", fleet]
    assert run(["scaling", *where]) == 0
    out = capsys.readouterr().out
    assert "sluice control" in out
    assert "nothing has been decided yet" in out
    assert run(["scaling", "--json", *where]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "leader": None,
        "state": None,
        "records": [],
        "known_since_at": None,
    }


def test_a_fleet_begins_with_no_more_sfus_than_its_pool_may_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "scaling.toml"
    file.write_text("max_nodes = 4\n")
    assert run(["up", "--sfus", "6", "--scaling", str(file)]) == 2
    assert "--sfus: 6 SFUs are more than the scaling file's max_nodes, which is 4" in capsys.readouterr().err


def test_a_scaling_file_is_checked_with_its_pool(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "scaling.toml"
    file.write_text('max_nodes = 9\n[pool]\nkind = "kubernetes"\n')
    assert run(["scaling", "check", str(file)]) == 2
    assert f"{file}:2 pool.deployment: name the Deployment" in capsys.readouterr().err
    file.write_text("max_nodes = 9\n")
    assert run(["scaling", "check", str(file)]) == 0
    assert "3 to 9 nodes of a process pool" in capsys.readouterr().out


def test_people_read_status_and_drains_as_tables(
    redis_url: str, fleet: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asyncio.run(put(redis_url, fleet))
    where = ["--redis", redis_url, "--fleet", fleet]
    assert run(["status", *where]) == 0
    assert run(["drains", *where]) == 0
    out = capsys.readouterr().out
    assert "held until uncordoned" in out
    assert "4.0 s" in out


def test_the_last_sfu_is_not_taken_out_without_a_yes(
    redis_url: str, fleet: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asyncio.run(put(redis_url, fleet))
    where = ["--redis", redis_url, "--fleet", fleet]
    for verb in ("drain", "cordon"):
        assert run([verb, "a", "--no-wait", *where]) == 2
        assert f"this would {verb} a, the last SFU that takes new players" in capsys.readouterr().err
        assert run([verb, "a", "--no-wait", "--yes", *where]) == 0
        assert run([verb, "b", "--no-wait", *where]) == 0


def test_a_forced_exit_needs_a_yes_where_no_person_can_be_asked(
    redis_url: str, fleet: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asyncio.run(put(redis_url, fleet))
    where = ["--redis", redis_url, "--fleet", fleet]
    assert run(["exit", "--all-cordoned", *where]) == 2
    assert "this would end b" in capsys.readouterr().err
    assert run(["exit", "--sfu", "a", "--yes", *where]) == 1
    assert "no SFU in that scope is" in capsys.readouterr().err
    assert run(["exit", "--sfu", "b", "--yes", "--no-wait", *where]) == 0


def test_whom_to_end_is_never_taken_from_the_environment(
    redis_url: str, fleet: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"SFU": "b", "YES": "1", "REDIS": redis_url, "FLEET": fleet}.items():
        monkeypatch.setenv(f"SLUICE_{name}", value)
    asyncio.run(put(redis_url, fleet))
    assert run(["exit"]) == 2
    assert run(["exit", "--sfu", "b"]) == 2
    assert "--yes" in capsys.readouterr().err
