"""Two SFU processes with one id, as two machines of one image can have: the second is refused, and says why."""

from __future__ import annotations

import re
import time

import pytest

from localfleet.fleet import Fleet, FleetSpec
from tests.integration.test_bots_fleet import crowd, until

pytestmark = pytest.mark.timeout(180)
SENTENCE = "another SFU named 'sfu-1' is alive: give each process an id of its own (--sfu)"


async def refusals(fleet: Fleet, router: str) -> float:
    """What the alert SluiceNameTaken counts."""
    async with fleet.session.get(f"{fleet.routers[router].http}/metrics") as answer:
        found = re.search(r'refused_total\{code="name-taken",peer="sfu"\} (\S+)', await answer.text())
    return float(found[1]) if found else 0.0


async def test_the_second_is_refused_with_a_sentence_and_the_first_keeps_its_calls() -> None:
    async with (
        Fleet(FleetSpec(routers=2, sfus=1)) as fleet,
        crowd(fleet, room="twins", bots=3, video=False) as people,
    ):
        await until(lambda: people.hearing(2))
        first = fleet.sfus["sfu-1"]
        log = fleet.logs / "sfu-1.log"
        log.rename(fleet.logs / "first.log")
        second = await fleet.add_sfu("sfu-1", wait=False)
        try:
            await until(lambda: log.read_text().count(f"router refused this SFU: {SENTENCE}") >= 2)
            for router in fleet.routers:
                deadline = time.monotonic() + 30.0
                while await refusals(fleet, router) < 2:
                    assert second.child.running
                    assert time.monotonic() < deadline, "an alert has nothing to go by"
                known = (await fleet.sfu_states(router) or {})["sfu-1"]
                assert known["address"].startswith(first.ws), "players go to the first"
                assert known["placeable"]
                assert SENTENCE in (fleet.logs / f"{router}.log").read_text()
            await people.hear_more()
            report = people.report()
            assert report.cut == ()
            assert (report.counts.moves, report.counts.rejoins) == (0, 0)
            first.child.kill_group()
            await first.child.wait()
            await until(lambda: "[link] up" in log.read_text())
        finally:
            first.child.kill_group()
            await first.child.wait()
