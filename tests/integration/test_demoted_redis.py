"""Redis fails over behind one address and the old connections stay open: the fleet goes on with the new master."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from localfleet.fleet import Fleet, FleetSpec
from rehearse.shell.stall import StallMeter
from shared.http_client import get_json
from tests.fakes.failover import Address, do, fail_over, master_and_replica
from tests.integration.test_bots_fleet import crowd, until

pytestmark = pytest.mark.timeout(180)
UP_AGAIN_WITHIN_S = 10.0


async def test_newcomers_at_every_router_hear_each_other_after_a_fail_over_and_no_call_is_cut(tmp_path: Path) -> None:
    async with master_and_replica() as (old, new):
        address = Address(old)
        await address.start()
        spec = FleetSpec(routers=2, sfus=1, redis=f"redis://127.0.0.1:{address.port}")
        async with (
            StallMeter() as stall,
            Fleet(spec, logs=tmp_path) as fleet,
            crowd(fleet, room="before", bots=2, video=False) as before,
        ):
            await until(lambda: before.hearing(1))
            written = set(await do(old, "KEYS", "*"))
            await fail_over(address, old, new)
            failed_at = time.monotonic()
            one, two = (program.ws for program in fleet.routers.values())
            async with (
                crowd(fleet, room="after", bots=1, video=False, routers=(one,), name="ann", seed=6) as ann,
                crowd(fleet, room="after", bots=1, video=False, routers=(two,), name="bob", seed=7) as bob,
            ):
                while not {key for key in await do(new, "KEYS", "*") if "after" in key} - written:
                    await asyncio.sleep(0.05)
                    assert time.monotonic() - failed_at < stall.forgive(UP_AGAIN_WITHIN_S), "still asking the old one"
                await until(lambda: ann.hearing(1) and bob.hearing(1))
            for program in fleet.routers.values():
                told = await get_json(fleet.session, f"{program.http}/api/sfus")
                assert told["store_up"]
            await before.hear_more()
            assert before.report().cut == ()
            assert before.report().counts.resumes == 0
        await address.stop()
