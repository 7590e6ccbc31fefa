"""Looks at a fleet while it scales: what nodes report, tick by tick, and the audit as it grows."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from control.core.autoscaler.samples import NodeCeilings, Samples
from control.core.scaling_settings import ScalingSettings
from rehearse.core.scale.replay import TickSeen
from shared.errors import StoreUnavailable
from shared.records import SfuState, sfu_id
from shared.scaling_records import ScaleAction, ScalingRecord, ScalingState
from shared.store.store import Store

RECORDS = 200
"""Audit records read; a rehearsal makes about ten."""
LOOK_EVERY_S = 0.1


class Recorder:
    """Use it as an async context manager. It measures each tick as the controller does, by the same code."""

    def __init__(self, store: Store, settings: ScalingSettings, *, say: Callable[[str], None]) -> None:
        self.ticks: list[TickSeen] = []
        self.records: list[ScalingRecord] = []
        """Oldest first."""
        self.state = ScalingState()
        self.states: dict[str, SfuState] = {}
        """The fleet's SFUs now."""
        self.last: dict[str, SfuState] = {}
        """The last report of every SFU there ever was."""
        self._store = store
        self._say = say
        ceilings = NodeCeilings(streams=settings.stream_ceiling)
        self._samples = Samples(ceilings=ceilings, max_age_s=settings.report_max_age_s)
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._look_for_ever())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._task is not None
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    def record(self, action: ScaleAction) -> ScalingRecord | None:
        """The first record of that action."""
        return next((record for record in self.records if record.action == action), None)

    async def _look_for_ever(self) -> None:
        while True:
            with contextlib.suppress(StoreUnavailable):
                await self._look()
            await asyncio.sleep(LOOK_EVERY_S)

    async def _look(self) -> None:
        states = await self._store.read_sfus()
        seen = await self._store.read_scaling(RECORDS)
        self.states = {sfu_id(state): state for state in states}
        self.last.update(self.states)
        new = list(reversed(seen.records))[len(self.records) :]
        self.records += new
        now = time.monotonic()
        self._samples.look(states, now=now)
        if seen.state is not None and seen.state.tick != self.state.tick:
            self._tick(seen.state, now)
        for record in new:
            words = " ".join(each for each in (record.action, record.node, f"({record.reason})", record.detail) if each)
            self._say(words)

    def _tick(self, state: ScalingState, now: float) -> None:
        before, self.state = self.state.figures, state
        loads = {sfu: report.load for sfu, report in self._samples.reports(now=now).items()}
        self._samples.next_tick()
        self.ticks.append(TickSeen(tick=state.tick, at=state.ticked_at, loads=loads))
        figures = state.figures
        if figures.out_hits > before.out_hits:
            load = f"mean load {figures.mean_load or 0:.2f}, {figures.binding} binds"
            self._say(f"hot tick {figures.out_hits}/{figures.out_window}: {load}")
        elif figures.quiet_ticks > before.quiet_ticks and figures.quiet_ticks % 5 == 0:
            self._say(
                f"quiet tick {figures.quiet_ticks}/{figures.quiet_needed}: mean load {figures.mean_load or 0:.2f}"
            )
