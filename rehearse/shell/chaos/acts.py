"""How each event of a chaos run is begun and undone."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Awaitable, Callable, Iterable

from redis.exceptions import RedisError

from localfleet.errors import FleetFailed
from localfleet.fleet import Fleet
from operators.shell.operations import command
from rehearse.core.chaos.events import ChaosEvent, ChaosKind
from rehearse.shell.chaos.roads import ChaosRoads
from rehearse.shell.chaos.tcp_road import TcpRoad
from shared.errors import SluiceError
from shared.host.child import Child
from shared.records import CommandVerb
from shared.store.connect import connect
from shared.store.store import Store

ENDS_WITHIN_S = 90.0
"""A drain whose players move at once; the fleet may be busy with other events."""
ORDERED_WITHIN_S = 90.0
"""An operator's patience: no event lasts longer than 40 s, and two about Redis or an SFU's links may follow each other
closely."""

Undo = Callable[[], Awaitable[None]]


class ChaosActs:
    """Carries events out on a fleet. `down` are the programs that are not meant to run at the moment."""

    def __init__(self, fleet: Fleet, roads: ChaosRoads, store: Store, say: Callable[[str], None]) -> None:
        self.down: set[str] = set()
        self._fleet = fleet
        self._roads = roads
        self._store = store
        self._say = say

    async def begin(self, event: ChaosEvent) -> Undo:
        """Do it; returns how it is undone. Raises `FleetFailed` when the test bed itself fails."""
        target = event.target
        match event.kind:
            case ChaosKind.KILL_ROUTER | ChaosKind.END_ROUTER | ChaosKind.KILL_SFU | ChaosKind.DRAIN_SFU:
                return self._end(target, hard=event.kind in (ChaosKind.KILL_ROUTER, ChaosKind.KILL_SFU))
            case ChaosKind.PAUSE_ROUTER | ChaosKind.PAUSE_SFU:
                return self._pause([self._child(target)])
            case ChaosKind.STALL_ALL:
                return self._pause(*self._everything())
            case ChaosKind.KILL_REDIS | ChaosKind.PAUSE_REDIS | ChaosKind.FLUSH_REDIS:
                return await self._redis(event.kind)
            case ChaosKind.CUT_MEDIA:
                self._roads.lose_datagrams(target, lost=True)
                return _later(lambda: self._roads.lose_datagrams(target, lost=False))
            case ChaosKind.CORDON:
                return await self._cordon(target)
            case _:
                return self._trouble(event)

    # --- programs ---

    def _child(self, name: str) -> Child:
        programs = self._fleet.routers if name in self._fleet.routers else self._fleet.sfus
        return programs[name].child

    def _end(self, name: str, *, hard: bool) -> Undo:
        child = self._child(name)
        self.down.add(name)
        child.send_signal(signal.SIGKILL if hard else signal.SIGTERM)

        async def again() -> None:
            try:
                await child.wait(ENDS_WITHIN_S)
            except TimeoutError:
                raise FleetFailed(program=name, detail=f"still runs {ENDS_WITHIN_S:.0f} s after SIGTERM") from None
            if name in self._fleet.routers:
                await self._fleet.add_router(name)
            else:
                program = await self._fleet.add_sfu(name, wait=False)
                await program.wait_ready(self._fleet.session)
            self.down.discard(name)

        return again

    def _pause(self, children: Iterable[Child], pids: Iterable[int] = ()) -> Undo:
        stopped, others = list(children), list(pids)
        for child in stopped:
            child.send_signal(signal.SIGSTOP)
        for pid in others:
            _signal(pid, signal.SIGSTOP)

        return _later(lambda: _continue(stopped, others))

    def _everything(self) -> tuple[list[Child], list[int]]:
        programs = [*self._fleet.routers.values(), *self._fleet.sfus.values()]
        redis = self._fleet.redis.pid if self._fleet.redis is not None else None
        children = [*self._fleet.others.values(), *(program.child for program in programs)]
        return children, [redis] if redis else []

    async def _redis(self, kind: ChaosKind) -> Undo:
        redis = self._fleet.redis
        if redis is None:
            return _later(lambda: None)
        if kind is ChaosKind.FLUSH_REDIS:
            await _flush(redis.url)
            return _later(lambda: None)
        if kind is ChaosKind.PAUSE_REDIS:
            return self._pause([], [redis.pid] if redis.pid else [])
        redis.kill()
        return redis.start

    def go_on(self) -> None:
        """Continue everything that may be paused, so that it can end."""
        children, pids = self._everything()
        _continue(children, pids)

    # --- ways ---

    def _trouble(self, event: ChaosEvent) -> Undo:
        roads = self._ways(event)
        freeze = event.kind in (ChaosKind.FREEZE_LINKS, ChaosKind.FREEZE_PLAYERS, ChaosKind.FREEZE_SIGNALLING)
        for road in roads:
            road.freeze() if freeze else road.cut()

        def mend() -> None:
            for road in roads:
                road.mend()

        return _later(mend)

    def _ways(self, event: ChaosEvent) -> list[TcpRoad]:
        if event.kind in (ChaosKind.CUT_LINKS, ChaosKind.FREEZE_LINKS):
            return self._roads.links_of(event.target)
        if event.kind in (ChaosKind.CUT_PLAYERS, ChaosKind.FREEZE_PLAYERS):
            return [self._roads.routers[event.target]]
        return [self._roads.signalling[event.target]]

    # --- operators ---

    async def _cordon(self, sfu: str) -> Undo:
        await self._order(CommandVerb.CORDON, sfu)

        async def undo() -> None:
            await self._order(CommandVerb.UNCORDON, sfu)

        return undo

    async def _order(self, verb: CommandVerb, sfu: str) -> None:
        """An operator tries for a while: Redis or the SFU's router may be away."""
        deadline, said = time.monotonic() + ORDERED_WITHIN_S, ""
        while True:
            try:
                await command(self._store, verb, sfu, reason="chaos", within_s=5.0)
            except (SluiceError, OSError) as error:
                if time.monotonic() > deadline:
                    detail = f"did not follow an operator's {verb.value} for {ORDERED_WITHIN_S:.0f} s"
                    raise FleetFailed(program=sfu, detail=detail) from None
                if str(error) != said:
                    self._say(f"{verb.value} of {sfu} did not go through yet: {error}")
                said = str(error)
                await asyncio.sleep(1.0)
            else:
                return


def _continue(children: Iterable[Child], pids: Iterable[int]) -> None:
    for pid in pids:
        _signal(pid, signal.SIGCONT)
    for child in children:
        child.send_signal(signal.SIGCONT)


def _later(undo: Callable[[], None]) -> Undo:
    async def run() -> None:
        undo()

    return run


async def _flush(url: str) -> None:
    client = connect(url)
    with contextlib.suppress(RedisError, OSError):
        await client.execute_command("FLUSHALL")
    await client.aclose()


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
