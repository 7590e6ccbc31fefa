"""The first second of a program: told to end it ends, also as process 1 of a container; it takes the files it may."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from shared.host.child import python

SECRET = "a-secret-of-the-tests, long enough for HS256"
ENDS_WITHIN_S = 5.0
STARTS_WITHIN_S = 30.0
NO_REDIS = "redis://127.0.0.1:1/0"
SCALING = '[pool]\nkind = "process"\nname = "t"\n'
COMMANDS = {
    "sfu": ["sfu", "--ws-port", "0", "--udp-port", "0", "--http-port", "0", "--routers", "ws://127.0.0.1:9"],
    "router": ["router", "--ws-port", "0", "--http-port", "0", "--redis", NO_REDIS],
    "control": ["control", "--http-port", "0", "--redis", NO_REDIS],
}
BOTS = ["bots", "--bots", "500", "--routers", "ws://127.0.0.1:9"]
HEAVY = ("aiohttp", "aiortc", "asyncio", "av", "cyclopts", "msgspec", "redis", "rich", "uvloop", "websockets")
SHARE = ("unshare", "--pid", "--fork", "--kill-child", "--")
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="a PID namespace needs root")


def commanded(name: str, place: Path) -> list[str]:
    """The program, as a container starts it."""
    command = python("cli", *COMMANDS.get(name, BOTS))
    if name == "control":
        (place / "scaling.toml").write_text(SCALING)
        command += ["--scaling", str(place / "scaling.toml")]
    return command


def hears_sigterm(pid: int) -> bool:
    """A handler is set."""
    status = Path(f"/proc/{pid}/status").read_text()
    caught = next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt:"))
    return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)


@contextmanager
def started(command: list[str], place: Path) -> Iterator[subprocess.Popen[bytes]]:
    environment = {**os.environ, "SLUICE_SECRET": SECRET, "XDG_STATE_HOME": str(place)}
    with (place / "log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def inner(process: subprocess.Popen[bytes]) -> int:
    """Process 1 of the namespace, once it is there and listens to SIGTERM."""
    deadline = time.monotonic() + STARTS_WITHIN_S
    while True:
        assert process.poll() is None, "ended before it was told to"
        assert time.monotonic() < deadline, "no handler for SIGTERM"
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        if children and hears_sigterm(int(children[0])):
            return int(children[0])
        time.sleep(0.001)


@as_root
@pytest.mark.parametrize("after_ms", [0, 50, 200, 500, 1000])
@pytest.mark.parametrize("name", COMMANDS)
def test_process_1_ends_with_status_0_whenever_it_is_told_to(name: str, after_ms: int, tmp_path: Path) -> None:
    with started([*SHARE, *commanded(name, tmp_path)], tmp_path) as process:
        first = inner(process)
        time.sleep(after_ms / 1000)
        os.kill(first, signal.SIGTERM)
        assert process.wait(ENDS_WITHIN_S) == 0, (tmp_path / "log").read_text()


@pytest.mark.parametrize("after_ms", [0, 50])
def test_behind_an_init_it_ends_before_its_interpreter_is_up(after_ms: int, tmp_path: Path) -> None:
    with started(commanded("sfu", tmp_path), tmp_path) as process:
        time.sleep(after_ms / 1000)
        process.send_signal(signal.SIGTERM)
        assert process.wait(ENDS_WITHIN_S) in (0, -signal.SIGTERM)


@pytest.mark.parametrize("module", ["cli.__main__", "sfu.__main__", "router.__main__"])
def test_the_handler_is_set_before_anything_heavy_is_imported(module: str) -> None:
    asked = f"import {module}, sys; print([each for each in sys.modules if each in {HEAVY}])"
    done = subprocess.run([*python("cli")[:2], "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def soft_limit_of_files(pid: int) -> int:
    """As the kernel has it."""
    limits = Path(f"/proc/{pid}/limits").read_text().splitlines()
    return int(next(line for line in limits if line.startswith("Max open files")).split()[3])


@pytest.mark.parametrize(
    ("name", "ready", "told"),
    [("sfu", "[sfu] ready", 1), ("router", "[router] up", 1), ("control", "[scale] up", 0), ("bots", "[bots] ", 1)],
)
def test_a_soft_limit_of_open_files_is_raised_at_start(name: str, ready: str, told: int, tmp_path: Path) -> None:
    """Those that hold players' connections say when it is too low for as many as are set."""
    with started(["prlimit", "--nofile=256:1024", *commanded(name, tmp_path)], tmp_path) as process:
        deadline = time.monotonic() + STARTS_WITHIN_S
        while ready not in (log := (tmp_path / "log").read_text()):
            assert time.monotonic() < deadline, log
            time.sleep(0.05)
        assert soft_limit_of_files(process.pid) == 1024
        assert log.count("1024 open files are allowed") == told
