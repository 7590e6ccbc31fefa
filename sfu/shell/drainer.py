"""Does what the drain machine decides: feeds it events, carries its effects out, wakes it at its deadlines."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from sfu.core.drain.events import (
    AnnounceCordoned,
    AnnounceUncordoned,
    AskPlayers,
    Effect,
    Event,
    ExitProcess,
    FinalSequenceDone,
    RejectOrder,
    RunFinalSequence,
    TimePassed,
)
from sfu.core.drain.machine import DrainMachine

log = logging.getLogger("sfu.drain")


class DrainActions(Protocol):
    """What the program does for the machine. None of these waits."""

    def announce_cordoned(self) -> None: ...

    def announce_uncordoned(self, lapsed: str) -> None: ...

    def ask_players(self, players: tuple[str, ...], within_s: float) -> None: ...

    def final_sequence(self, bound_s: float) -> Coroutine[Any, Any, None]: ...

    def exit_process(self, status: int) -> None: ...


class Drainer:
    """The machine's shell."""

    def __init__(self, machine: DrainMachine, actions: DrainActions, *, clock: Callable[[], float]) -> None:
        self.machine = machine
        self._actions = actions
        self._clock = clock
        self._timer: asyncio.TimerHandle | None = None
        self._final: asyncio.Task[None] | None = None

    def handle(self, event: Event) -> None:
        """Something has happened."""
        for effect in self.machine.handle(event, now=self._clock()):
            self._do(effect)
        self._arm()

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        deadline = self.machine.next_deadline()
        loop = asyncio.get_running_loop()
        # A timer may come a little early by the other clock's granularity; the machine is then asked again.
        delay = None if deadline is None else max(0.001, deadline - self._clock())
        self._timer = None if delay is None else loop.call_later(delay, self.handle, TimePassed())

    def _do(self, effect: Effect) -> None:
        match effect:
            case AnnounceCordoned():
                self._actions.announce_cordoned()
            case AnnounceUncordoned():
                self._actions.announce_uncordoned(effect.lapsed)
            case AskPlayers():
                self._actions.ask_players(effect.players, effect.within_s)
            case RunFinalSequence():
                log.info("[drain] final sequence outcome=%s bound_s=%.1f", effect.outcome, effect.bound_s)
                self._final = asyncio.create_task(self._run_final(effect.bound_s))
            case ExitProcess():
                self._actions.exit_process(effect.status)
            case RejectOrder():
                log.warning("[drain] %s refused: %s", effect.order, effect.reason)

    async def _run_final(self, bound_s: float) -> None:
        try:
            await self._actions.final_sequence(bound_s)
        except Exception:
            # Whatever goes wrong here: the process must end before the kill, with status 0.
            log.exception("[drain] the final sequence failed")
        self.handle(FinalSequenceDone())
