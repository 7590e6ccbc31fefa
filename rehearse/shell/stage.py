"""The stage of a rehearsal: a private fleet with bots on it, and what the bots say sorted into endings."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from localfleet.errors import FleetFailed
from localfleet.fleet import Fleet
from rehearse.config import UNDISTURBED, RollRehearsed
from rehearse.core.crowd_view import CrowdView
from rehearse.core.ending import Ending
from rehearse.core.rehearsal import RehearsalKind
from rehearse.shell.crowd import Crowd
from shared.records import DrainReport
from shared.store.store import Store

REPORT_WITHIN_S = 5.0
LOOK_EVERY_S = 0.1


@dataclass(slots=True)
class Stage:
    """All that a play needs."""

    kind: RehearsalKind
    fleet: Fleet
    crowd: Crowd
    store: Store
    say: Callable[[str], None]
    roll: RollRehearsed = UNDISTURBED
    endings: list[Ending] = field(default_factory=list)
    roll_troubles: list[str] = field(default_factory=list)
    """Why the roll paused or did not end."""
    interruptions: int = 0

    @property
    def view(self) -> CrowdView:
        """What the bots have said so far."""
        return self.crowd.view

    def begin(self, sfu: str, *, at: float) -> Ending:
        """From now on what bots say of this SFU belongs to its ending."""
        ending = Ending(sfu=sfu, on_it=frozenset(self.view.on(sfu)), began=at)
        self.endings.append(ending)
        self.view.watch(ending)
        return ending

    def fullest_sfu(self) -> str:
        """The running SFU with the most players; the first by name among equals."""
        running = [name for name, program in self.fleet.sfus.items() if program.child.running]
        return max(sorted(running), key=lambda name: len(self.view.on(name)))

    async def wait_ended(self, ending: Ending, *, within_s: float) -> None:
        """Wait for the process' end and note it; past `within_s` the ending has no exit status."""
        child = self.fleet.sfus[ending.sfu].child
        try:
            ending.exit_code = await child.wait(within_s)
        except TimeoutError:
            self.say(f"{ending.sfu} still runs after {within_s:.0f} s")
            return
        ending.ended = child.ended_mono
        ending.report = await drain_report(self.store, ending.sfu)

    async def until(self, condition: Callable[[], bool], *, within_s: float) -> bool:
        """Wait until `condition` holds, looked at with each word of the bots; False when the time is over."""
        deadline = time.monotonic() + within_s
        while not condition():
            if not self.crowd.running:
                raise FleetFailed(program="bots", detail="ended in the middle of it", log=self.crowd.tail())
            if time.monotonic() > deadline:
                return False
            await self.crowd.next_word(within_s=LOOK_EVERY_S)
        return True


async def drain_report(store: Store, sfu: str) -> DrainReport | None:
    """What the SFU said of its drain; None: it has left no report within `REPORT_WITHIN_S`."""
    deadline = time.monotonic() + REPORT_WITHIN_S
    while time.monotonic() < deadline:
        for report in await store.read_drain_reports(50):
            if report.sfu == sfu:
                return report
        await asyncio.sleep(LOOK_EVERY_S)
    return None
