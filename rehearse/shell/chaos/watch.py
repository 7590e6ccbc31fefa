"""Looks at a fleet in trouble: what the bots say each second, what the routers tell, what the logs hold."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections import deque
from pathlib import Path
from typing import Any

import msgspec

from localfleet.fleet import Fleet
from rehearse.core.chaos.seen import (
    SAMPLE_S,
    BotSample,
    BotWord,
    ChaosSeen,
    RoomSight,
    RouterSight,
    all_hear,
    samples_in,
)
from rehearse.shell.cpu_wait import CpuWaits
from rehearse.shell.crowd import Crowd
from rehearse.shell.stall import NOTED_S
from shared.http_client import get_json

EVERY_S = SAMPLE_S
GAP_TOLD_MS = 200.0
"""Silences beyond this are written into the bots' words, with what the machine did then."""
WORDS = frozenset({"joined", "resumed", "evicted", "rejoined", "switched", "failed-connection"})
TRACEBACK = b"Traceback (most recent call last)"
FALLBACK = "see the file"


class ChaosWatch:
    """Run it as a task while the events happen; `seen` is the round that goes on. `hear` is for the crowd."""

    def __init__(self, fleet: Fleet) -> None:
        self.seen = ChaosSeen()
        self.samples: deque[list[BotSample]] = deque(maxlen=600)
        """All bots, once a second, newest last."""
        self._fleet = fleet
        self._read: dict[Path, int] = {}
        self._events = (fleet.logs / "chaos-bots.jsonl").open("ab")

    def hear(self, said: dict[str, Any]) -> None:
        """The bots said something."""
        event, at = said.get("event"), float(said.get("t") or 0.0)
        if event == "report":
            samples = samples_in(said["report"], at=at)
            self.samples.append(samples)
            self._note_lag(float(said["report"]["marked_send_lag_ms"]) / 1000, at)
            self.seen.samples += samples
            self._tell_gaps(samples)
            return
        self._events.write(msgspec.json.encode(said) + b"\n")
        if event in WORDS and "bot" in said:
            self.seen.words.append(BotWord(at, str(said["bot"]), str(event), str(said.get("sfu", ""))))

    def _note_lag(self, late_s: float, at: float) -> None:
        """How late the bots' own sending was in the second before `at`."""
        if late_s > NOTED_S:
            self.seen.lags.append((at, late_s))

    def _tell_gaps(self, samples: list[BotSample]) -> None:
        for sample in samples:
            if sample.gap_ms is not None and sample.gap_ms > GAP_TOLD_MS:
                told = {"t": sample.at, "bot": sample.bot, "event": "silence", "ms": round(sample.gap_ms)}
                waited = {"machine": self.seen.waits[-1:], "lag": self.seen.lags[-1:]}
                self._events.write(msgspec.json.encode({**told, **waited}) + b"\n")

    async def _note_waits(self, crowd: Crowd) -> None:
        """A packet goes from the bots through our proxy to an SFU, and back the same way."""
        waits, ours = CpuWaits(), os.getpid()
        while True:
            sfus = [program.child.pid for program in self._fleet.sfus.values()]
            waited = waits.since_last([ours, crowd.pid, *sfus])
            on_the_way = waited.get(ours, 0.0) + waited.get(crowd.pid, 0.0)
            total = on_the_way + max((waited.get(pid, 0.0) for pid in sfus), default=0.0)
            if total > NOTED_S:
                self.seen.waits.append((time.monotonic(), total))
            await asyncio.sleep(EVERY_S)

    async def run(self, crowd: Crowd) -> None:
        """Look once a second, for ever."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._sample(crowd))
            tasks.create_task(self._look())
            tasks.create_task(self._note_waits(crowd))

    def close(self) -> None:
        """Close what is written."""
        self._events.close()

    @property
    def newest(self) -> list[BotSample]:
        """Of each bot; empty before the first."""
        return self.samples[-1] if self.samples else []

    def deaf(self, *, since: float) -> list[str]:
        """Who has not heard its whole room over the last two seconds, all of them after `since`; `*`: not known yet."""
        recent = [each for each in self.samples if each and each[0].at > since]
        return all_hear(recent[-3], recent[-1]) if len(recent) >= 3 else ["*"]

    async def unplaceable(self) -> dict[str, str]:
        """SFUs that some router would not place players on, and why."""
        found: dict[str, str] = {}
        for router in self._fleet.routers:
            states = await self._fleet.sfu_states(router)
            if states is None:
                found[router] = "does not answer"
                continue
            for sfu in self._fleet.sfus:
                if sfu not in states:
                    found[sfu] = f"is not known to {router}"
                elif not states[sfu]["placeable"]:
                    found[sfu] = f"is not placeable for {router}: {states[sfu]['refused']}"
        return found

    async def rooms(self) -> list[RoomSight]:
        """Every room as every router tells it."""
        there: dict[str, set[str]] = {}
        for sample in self.newest:
            there.setdefault(sample.room, set()).add(sample.bot)
        sights = []
        for router, program in self._fleet.routers.items():
            for room, bots in sorted(there.items()):
                answer = await get_json(self._fleet.session, f"{program.http}/api/rooms/{room}")
                if answer is None:
                    continue  # no such room here, or no answer, which `unplaceable` tells
                identities = {record["player"]: record["identity"] for record in answer["players"]}
                publishers = (identities.get(record["player"], "?") for record in answer["publications"])
                sights.append(
                    RoomSight(
                        router=router,
                        room=room,
                        players=tuple(record["identity"] for record in answer["players"]),
                        publications=tuple(publishers),
                        there=frozenset(bots),
                    )
                )
        return sights

    def new_tracebacks(self) -> list[tuple[str, str]]:
        """Log files in which a traceback has been written since the last call, and its last line."""
        found = []
        for path in sorted(self._fleet.logs.glob("*.log")):
            with path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                text = file.read()
            self._read[path] = self._read.get(path, 0) + len(text)
            found += [(path.name, last) for last in last_lines(text)]
        return found

    async def _sample(self, crowd: Crowd) -> None:
        while True:
            await crowd.tell(cmd="report")
            await crowd.tell(cmd="mark")
            await asyncio.sleep(EVERY_S)

    async def _look(self) -> None:
        while True:
            await asyncio.gather(*(self._ask(router) for router in self._fleet.routers))
            await asyncio.sleep(EVERY_S)

    async def _ask(self, router: str) -> None:
        seen = self.seen
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(2.0):
                states = await self._fleet.sfu_states(router)
                if states is not None:
                    placeable = {sfu: bool(state["placeable"]) for sfu, state in states.items()}
                    status = {sfu: str(state["status"]) for sfu, state in states.items()}
                    seen.sights.append(
                        RouterSight(at=time.monotonic(), router=router, placeable=placeable, status=status)
                    )


def last_lines(text: bytes) -> list[str]:
    """For each traceback in a log: the line that names the exception."""
    found = []
    for part in text.split(TRACEBACK)[1:]:
        lines = part.decode(errors="replace").splitlines()[1:]
        found.append(next((line for line in lines if line and not line.startswith(" ")), FALLBACK)[:300])
    return found
