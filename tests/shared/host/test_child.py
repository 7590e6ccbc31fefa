"""Children end with their parent, and their end is known."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from shared.host.child import start, tail

SLEEP = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)"]


def ended(pid: int) -> bool:
    """Whether no live process has that id (a zombie has ended)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


async def until(condition: object, *, within_s: float = 20.0) -> None:
    deadline = time.monotonic() + within_s
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline, "did not happen in time"
        await asyncio.sleep(0.02)


async def test_exit_status_and_log_are_kept(tmp_path: Path) -> None:
    child = await start("c", [sys.executable, "-c", "print('words'); raise SystemExit(7)"], logs=tmp_path)
    assert await child.wait(20) == 7
    assert child.ended_mono is not None
    assert child.tail() == "words\n"


async def test_a_child_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    code = "import signal, time; signal.signal(15, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
    child = await start("c", [sys.executable, "-c", code], logs=tmp_path)
    await until(lambda: child.tail() == "up\n")
    assert await child.stop(within_s=0.1) == -signal.SIGKILL


async def test_waiting_has_a_bound_and_does_not_end_the_child(tmp_path: Path) -> None:
    child = await start("c", SLEEP, logs=tmp_path)
    with pytest.raises(TimeoutError):
        await child.wait(0.05)
    assert child.running
    await child.stop()


async def test_signals_for_an_ended_child_go_nowhere(tmp_path: Path) -> None:
    child = await start("c", [sys.executable, "-c", ""], logs=tmp_path)
    await child.wait(20)
    child.send_signal(signal.SIGTERM)
    child.kill_group()
    assert await child.stop() == 0


async def test_children_die_with_a_parent_that_was_killed(tmp_path: Path) -> None:
    script = f"""
import asyncio, sys
from pathlib import Path
from shared.host.child import start
async def main():
    child = await start("grandchild", {SLEEP!r}, logs=Path({str(tmp_path)!r}))
    while child.tail() != "up\\n":
        await asyncio.sleep(0.02)
    print(child.pid, flush=True)
    await asyncio.sleep(600)
asyncio.run(main())
"""
    parent = await start("parent", [sys.executable, "-c", script], logs=tmp_path)
    await until(lambda: parent.tail().endswith("\n"))
    grandchild = int(parent.tail())
    assert not ended(grandchild)
    os.kill(parent.pid, signal.SIGKILL)
    await until(lambda: ended(grandchild))


async def test_piped_children_talk_over_their_standard_streams(tmp_path: Path) -> None:
    child = await start(
        "c", [sys.executable, "-c", "print(input()[::-1])"], logs=tmp_path, env=dict(os.environ), piped=True
    )
    assert child.process.stdin is not None
    assert child.process.stdout is not None
    child.process.stdin.write(b"abc\n")
    assert await child.process.stdout.readline() == b"cba\n"
    assert await child.wait(20) == 0


def test_tail_starts_at_a_line(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text("first line\nsecond line\n")
    assert tail(log, limit=15) == "second line\n"
    assert tail(tmp_path / "missing.log") == ""
