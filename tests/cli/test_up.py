"""`sluice up` into a file: the log must tell what became of each program."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import pytest

from cli.up import tell
from localfleet.fleet import Fleet, FleetSpec


async def test_each_program_that_ends_is_told_once_and_how(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fleet, stop = Fleet(FleetSpec(), logs=tmp_path), asyncio.Event()
    quits = await fleet.start_other("bots", [sys.executable, "-c", "raise SystemExit(3)"])
    killed = await fleet.start_other("sfu-9", [sys.executable, "-c", "import time; time.sleep(600)"])
    killed.send_signal(signal.SIGKILL)
    await asyncio.gather(quits.wait(30), killed.wait(30))
    telling = asyncio.create_task(tell(fleet, stop))
    said = ""
    async with asyncio.timeout(30):
        while "bots" not in said or "sfu-9" not in said:
            await asyncio.sleep(0.01)
            said += capsys.readouterr().out
    stop.set()
    await telling
    said += capsys.readouterr().out
    assert sorted(said.splitlines()) == [
        f"bots ended with status 3; its log is {tmp_path}/bots.log",
        f"sfu-9 was ended by SIGKILL; its log is {tmp_path}/sfu-9.log",
    ]
