"""A machine's stalls are noticed."""

from __future__ import annotations

import asyncio
import time

from rehearse.shell.stall import StallMeter


async def test_a_loop_that_is_held_up_is_a_stall() -> None:
    async with StallMeter() as meter:
        await asyncio.sleep(0)
        time.sleep(0.2)  # noqa: ASYNC251 -- the stall
        await asyncio.sleep(0.05)
    assert meter.worst_ms > 150
    assert meter.forgive(5.0) > 8.0
    assert [length > 0.15 for _, length in meter.take()] == [True]
    assert meter.take() == []
