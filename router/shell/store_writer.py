"""Writes this router's players and publications to Redis in the background; what can't be written waits, coalesced."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Literal

import msgspec

from router.core.room import Room
from router.core.sessions import Session
from router.shell.state import RouterState
from shared.errors import StoreUnavailable
from shared.jitter import full_jitter
from shared.records import DrainReport
from shared.store.answers import Wake, WakeKind

BATCH = 16
PAUSE_S = 0.005
"""Between two batches: at most 3,200 writes a second when a router puts back what Redis has lost."""
MAX_WAITING = 100_000
"""Entries that may wait. Leaves beyond it are dropped: leases end them (invariant 8)."""
MAX_REPORTS = 256

Kind = Literal["player", "leave", "publication"]
Key = tuple[Kind, str, str, str]
"""Kind, room, player, publication (or empty)."""


class StoreWriter:
    """Entries name players and publications; what is written is their state at the time of writing."""

    def __init__(
        self, state: RouterState, *, replaced: Callable[[Session], None], reread: Callable[[str], None]
    ) -> None:
        self._state = state
        self._replaced = replaced
        self._reread = reread
        self._waiting: dict[Key, None] = {}
        self._wakes: dict[str, None] = {}
        self._reports: list[DrainReport] = []
        self._news = asyncio.Event()

    def player(self, room: str, player: str) -> None:
        """The player's record has changed."""
        self._add(("player", room, player, ""))

    def leave(self, room: str, player: str) -> None:
        """The session is over."""
        self._waiting.pop(("player", room, player, ""), None)
        self._add(("leave", room, player, ""))

    def publication(self, room: str, player: str, publication: str) -> None:
        """The publication has changed or ended."""
        self._add(("publication", room, player, publication))

    def wake(self, room: str) -> None:
        """Other routers should read the room again."""
        self._wakes[room] = None
        self._news.set()

    def report(self, report: DrainReport) -> None:
        """Keep a drain's report."""
        if len(self._reports) < MAX_REPORTS:
            self._reports.append(report)
            self._news.set()

    @property
    def waiting(self) -> int:
        """Entries not written yet."""
        return len(self._waiting)

    async def run(self) -> None:
        """Write for ever. While Redis is unreachable everything waits."""
        while True:
            await self._news.wait()
            if self._state.directory.blind:
                await asyncio.sleep(full_jitter(0, self._state.rng))
                continue
            self._news.clear()
            await self._flush()
            if self._waiting or self._wakes or self._reports:
                self._news.set()
                await asyncio.sleep(PAUSE_S)

    async def _flush(self) -> None:
        batch = [key for key, _ in zip(list(self._waiting), range(BATCH), strict=False)]
        for key in batch:
            del self._waiting[key]
        await asyncio.gather(*(self._write(key) for key in batch))
        reports, self._reports = self._reports, []
        wakes, self._wakes = self._wakes, {}
        try:
            for report in reports:
                await self._state.store.push_drain_report(report)
            for room in wakes:
                await self._state.store.wake(Wake(WakeKind.ROOM, room))
        except StoreUnavailable:
            self._reports = (reports + self._reports)[:MAX_REPORTS]  # a report that is pushed twice is kept once

    async def _write(self, key: Key) -> None:
        kind, room, player, publication = key
        try:
            if kind == "player":
                await self._put_player(room, player)
            elif kind == "leave":
                await self._state.store.leave_room(room, player)
            else:
                await self._put_publication(room, player, publication)
        except StoreUnavailable:
            self._add(key)
            return
        self._wakes[room] = None

    async def _put_player(self, name: str, player: str) -> None:
        room = self._state.rooms.get(name)
        session = room.sessions.get(player) if room else None
        if room is None or session is None:
            return
        if await self._state.store.put_player(name, room.players[player]):
            session.provisional = False
        elif session.provisional:
            entered = await self._state.store.enter_room(name, room.players[player])
            session.provisional = False
            self._take_epoch(room, session, entered.epoch)
        else:
            await self._refused(room, session)

    async def _refused(self, room: Room, session: Session) -> None:
        """A newer session of the identity is known. It may be this one: its `enter_room` was carried out twice."""
        held = (await self._state.store.read_room(room.name)).players.get(session.player)
        if held is not None and held.epoch > session.claims.epoch:
            self._take_epoch(room, session, held.epoch)
            self.player(room.name, session.player)
        elif room.sessions.get(session.player) is session:
            self._replaced(session)

    @staticmethod
    def _take_epoch(room: Room, session: Session, epoch: int) -> None:
        """The epoch that Redis gave the session; a resume token with an older one is brought up to it on resume."""
        session.claims = msgspec.structs.replace(session.claims, epoch=epoch)
        record = room.players.get(session.player)
        if record is not None and room.sessions.get(session.player) is session:
            room.put_player(msgspec.structs.replace(record, epoch=epoch))

    async def _put_publication(self, name: str, player: str, publication: str) -> None:
        room = self._state.rooms.get(name)
        record = room.publications.get(publication) if room else None
        if room is not None and record is not None and player in room.sessions and record.player == player:
            if not await self._state.store.put_publication(name, record):
                self._reread(name)
        else:
            await self._state.store.remove_publication(name, publication, player)

    def _add(self, key: Key) -> None:
        if len(self._waiting) < MAX_WAITING or key[0] != "leave":
            self._waiting[key] = None
            self._news.set()
