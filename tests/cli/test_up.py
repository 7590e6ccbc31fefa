"""`sluice up` into a file: the log must tell what became of each program."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import pytest

from cli.up import tell
from localfleet.fleet import Fleet, FleetSpec
from operators.core.fleet_view import FleetView, fleet_view
from shared.errors import StoreUnavailable
from shared.records import SfuState
from shared.store.answers import HeardSfu


async def no_news() -> FleetView:
    return fleet_view("f", sfus=[], routers=[])


async def test_each_program_that_ends_is_told_once_and_how(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fleet, stop = Fleet(FleetSpec(), logs=tmp_path), asyncio.Event()
    quits = await fleet.start_other("bots", [sys.executable, "-c", "raise SystemExit(3)"])
    killed = await fleet.start_other("sfu-9", [sys.executable, "-c", "import time; time.sleep(600)"])
    killed.send_signal(signal.SIGKILL)
    await asyncio.gather(quits.wait(30), killed.wait(30))
    telling = asyncio.create_task(tell(fleet, stop, look=no_news))
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


async def test_what_changes_is_told_once_and_an_outage_is_no_change(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cli.up.REDRAW_S", 0.0)
    stop, state = asyncio.Event(), SfuState(address="ws://a", sfu="a")
    looks: list[float | None] = [0.1, 0.2, None, None, 0.3, 4.0, 5.0]

    async def look() -> FleetView:
        if not looks:
            stop.set()
            return fleet_view("f", sfus=[], routers=[])
        if (silent_for_s := looks.pop(0)) is None:
            raise StoreUnavailable(operation="hear_sfus", detail="no answer within 1 s")
        return fleet_view("f", sfus=[HeardSfu(state, silent_for_s=silent_for_s)], routers=[])

    await tell(Fleet(FleetSpec(), logs=tmp_path), stop, look=look)
    up, away, back, silent, gone = capsys.readouterr().out.splitlines()
    assert up == "a is ONLINE"
    assert "no answer within 1 s" in away
    assert back == "Redis answers again"
    assert silent == "a is silent: nothing was heard of it for 4.0 s"
    assert gone == "a has left"
