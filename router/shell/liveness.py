"""What only time decides: silent peers, lost SFUs, sessions not resumed. One task for all connections."""

from __future__ import annotations

import asyncio
import logging

from router.shell.sessions import Sessions
from router.shell.state import RouterState
from router.shell.wire import WireConnection
from shared.logs import fields
from shared.messages.codes import CloseCode

TICK_S = 0.25
PING_AFTER_S = 20.0
"""A peer silent for this long is asked for a sign of life (browsers ping by themselves every 10 s)."""
LOST_AFTER_S = 25.0
"""A player that has not answered that for so long is shown as lost, to its room and in the API."""
GONE_AFTER_S = 45.0
"""A player silent for this long is cut off; its session can still be resumed."""
SFU_GONE_AFTER_S = 10.0
"""An SFU reports each second."""
PINGS_A_TICK = 500
"""Bound on pings in one tick, so that thousands of players that came at once are asked over a few seconds."""
log = logging.getLogger("router")


class Liveness:
    """Watches all websockets of this router."""

    def __init__(self, state: RouterState, sessions: Sessions) -> None:
        self._state = state
        self._sessions = sessions
        self.players: set[WireConnection] = set()
        self.sfus: set[WireConnection] = set()
        self._lost: set[WireConnection] = set()
        """Players that are shown as lost."""

    async def run(self) -> None:
        """Watch for ever."""
        state = self._state
        ticks = 0
        while True:
            await asyncio.sleep(TICK_S)
            state.metrics.lag.observe(state.clock.tick())
            ticks += 1
            self._lost_sfus()
            if ticks % 4 == 0:
                self._sessions.expire()
                self._silent(state.mono())

    def _lost_sfus(self) -> None:
        state = self._state
        for fact in state.directory.tick(now=state.mono()):
            told = state.teller.tell([fact])
            state.metrics.told.inc(told)
            log.warning("[drain] lost %s", fields(sfu=fact.sfu, told=told))

    def _silent(self, now: float) -> None:
        for wire in self.sfus:
            if now - wire.heard > SFU_GONE_AFTER_S:
                wire.end(CloseCode.IDLE, "nothing heard")
        pings = 0
        for wire in self.players:
            silent_s = now - wire.heard
            if (silent_s > LOST_AFTER_S) != (wire in self._lost):
                self._mark(wire, lost=silent_s > LOST_AFTER_S)
            if silent_s > GONE_AFTER_S:
                wire.end(CloseCode.IDLE, "nothing heard")
            elif silent_s > PING_AFTER_S and now - wire.pinged > PING_AFTER_S and pings < PINGS_A_TICK:
                wire.ping_now()
                pings += 1
        self._lost &= self.players

    def _mark(self, wire: WireConnection, *, lost: bool) -> None:
        if lost:
            self._lost.add(wire)
        else:
            self._lost.discard(wire)
        if wire.session is not None:
            self._sessions.mark(wire.session, wire, lost=lost)
