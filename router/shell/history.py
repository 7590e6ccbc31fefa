"""Brings to Redis what it should know of placements: the history (P5), and which SFUs players could not connect to."""

from __future__ import annotations

import asyncio
import logging

from router.shell.state import RouterState
from shared.errors import StoreUnavailable
from shared.logs import fields
from shared.placing import Tries

EVERY_S = 0.25
"""Soon enough for a person who asks `sluice explain`, and a burst of joins is a few calls."""
AT_ONCE = 100
"""Records a call: about 100 KiB."""
log = logging.getLogger("router")


class History:
    """A loop of its own, so that no placement waits for it."""

    def __init__(self, state: RouterState) -> None:
        self._state = state

    async def run(self) -> None:
        """Write for ever; an outage of Redis does not end it."""
        while True:
            await asyncio.sleep(EVERY_S)
            await self.bring()

    async def bring(self) -> None:
        """Write all there is, unless Redis is away."""
        # Tries are never kept: what is two minutes old when Redis is back says nothing about now.
        tries = self._state.tries.take()
        if self._state.directory.blind:
            return
        await self._bring_placements()  # separately: a list that can't be written hides no failing SFU
        await self._bring_tries(tries)

    async def _bring_placements(self) -> None:
        state = self._state
        records = state.placements.take_unsent(AT_ONCE)
        try:
            while records:
                await state.store.push_placements(records)
                records = state.placements.take_unsent(AT_ONCE)
        except StoreUnavailable:
            state.placements.put_back(records)

    async def _bring_tries(self, tries: list[Tries]) -> None:
        state, rule = self._state, self._state.config.failure_rule
        try:
            failing = await state.store.note_tries(tries, rule)
            if failing:
                await read_failing(state)
        except StoreUnavailable:
            return
        for sfu in failing:
            log.warning("[place] connections fail for many %s", fields(sfu=sfu, pause_s=rule.pause_s))


async def read_failing(state: RouterState) -> None:
    """Read which SFUs fail for many, and avoid them from now on. Raises `StoreUnavailable`."""
    failing = {each.sfu: (each.incarnation, each.left_s) for each in await state.store.read_failing()}
    state.assigner.standings.fail(failing, now=state.mono())
