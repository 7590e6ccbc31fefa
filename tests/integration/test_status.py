"""What an operator sees of a fleet of real processes when one of them is gone or frozen."""

from __future__ import annotations

import asyncio
import signal
import time

import pytest

from localfleet.fleet import Fleet, FleetSpec
from operators.core.fleet_view import SILENT, FleetView
from operators.shell.operations import open_store, view
from operators.shell.target import Target
from rehearse.shell.stall import StallMeter

pytestmark = pytest.mark.timeout(120)
SILENT_WITHIN_S = 3.5
"""Silent 3 s after the last word, looked at ten times a second."""


async def test_killed_and_frozen_programs_are_shown_as_silent_within_three_seconds() -> None:
    async with (
        Fleet(FleetSpec(routers=2, sfus=3)) as fleet,
        open_store(Target(redis=fleet.redis_url, fleet=fleet.spec.fleet)) as store,
        StallMeter() as stall,
    ):

        async def until_silent(*names: str) -> FleetView:
            """A look at the fleet in which these programs and no others are silent."""
            async with asyncio.timeout(30):
                while True:
                    now = await view(store, fleet.spec.fleet)
                    silent = {row.sfu for row in now.sfus if row.status == SILENT}
                    if silent | {row.router for row in now.routers if row.silent} == set(names):
                        return now
                    await asyncio.sleep(0.1)

        before = await view(store, fleet.spec.fleet)
        assert {row.status for row in before.sfus} == {"ONLINE"}
        began = time.monotonic()
        fleet.signal_sfu("sfu-1", signal.SIGKILL)
        fleet.signal_sfu("sfu-2", signal.SIGSTOP)
        fleet.routers["router-2"].child.send_signal(signal.SIGKILL)
        seen = await until_silent("sfu-1", "sfu-2", "router-2")
        assert time.monotonic() - began <= stall.forgive(SILENT_WITHIN_S)
        rows = {row.sfu: row for row in seen.sfus}
        assert all(rows[sfu].load is None and rows[sfu].players is None for sfu in ("sfu-1", "sfu-2"))
        assert (rows["sfu-1"].last_status, rows["sfu-3"].last_status) == ("ONLINE", "ONLINE")

        fleet.signal_sfu("sfu-2", signal.SIGCONT)
        back = await until_silent("sfu-1", "router-2")
        assert {row.sfu: row.status for row in back.sfus}["sfu-2"] == "ONLINE"
