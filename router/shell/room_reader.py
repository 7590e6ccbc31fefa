"""Reads rooms from Redis again when something says that they have changed; many hints, one reading."""

from __future__ import annotations

import asyncio

from router.core.room import Room
from router.shell.sessions import Sessions
from router.shell.state import RouterState
from shared.errors import StoreUnavailable
from shared.store.answers import RoomRecord

GATHER_S = 0.03
"""Hints that come within this time are one."""
BATCH = 8


class RoomReader:
    """The rooms to read, and the reading of them."""

    def __init__(self, state: RouterState, sessions: Sessions) -> None:
        self._state = state
        self._sessions = sessions
        self._wanted: dict[str, None] = {}
        self._news = asyncio.Event()

    def want(self, room: str) -> None:
        """Read `room` soon, if it is hosted here."""
        if self._state.rooms.get(room) is not None:
            self._wanted[room] = None
            self._news.set()

    def merge(self, room: Room, record: RoomRecord) -> None:
        """Take over a reading, and act on what it says of the sessions here."""
        merged = room.merge(
            version=record.version,
            players=record.players,
            publications=record.publications,
            placement=record.placement,
            router=self._state.config.router,
            now=self._state.mono(),
        )
        self._sessions.merged(room, merged)

    async def run(self) -> None:
        """Read for ever. What can't be read is found again by its version, once Redis is back."""
        while True:
            await self._news.wait()
            self._news.clear()
            await asyncio.sleep(GATHER_S)
            wanted, self._wanted = list(self._wanted), {}
            for i in range(0, len(wanted), BATCH):
                await asyncio.gather(*(self._read(name) for name in wanted[i : i + BATCH]))

    async def _read(self, name: str) -> None:
        if self._state.rooms.get(name) is None:
            return
        try:
            record = await self._state.need_store("read_room").read_room(name)
        except StoreUnavailable:
            return
        room = self._state.rooms.get(name)
        if room is not None:
            self.merge(room, record)
