"""Renews the leases of this router's players: every room once in 10 s, spread over that time."""

from __future__ import annotations

import asyncio
from zlib import crc32

from router.core.room import Room
from router.shell.state import RouterState
from router.shell.store_writer import StoreWriter
from shared.errors import StoreUnavailable

SLOTS = 40
SLOT_S = 0.25
"""40 slots of 0.25 s: each room every 10 s, against a lease of 40 s."""
BATCH = 500
"""Players a call."""


class Leases:
    """Keeps records of living sessions alive, those waiting to be resumed included."""

    def __init__(self, state: RouterState, writer: StoreWriter) -> None:
        self._state = state
        self._writer = writer

    async def run(self) -> None:
        """Renew for ever; during an outage there is nothing to renew."""
        slot = 0
        while True:
            await asyncio.sleep(SLOT_S)
            slot = (slot + 1) % SLOTS
            due = [room for room in self._state.rooms if crc32(room.name.encode()) % SLOTS == slot]
            try:
                for room in due:
                    await self._renew(room)
            except StoreUnavailable:
                continue  # the exchange notices, and puts everything back afterwards

    async def _renew(self, room: Room) -> None:
        players = list(room.sessions)
        for i in range(0, len(players), BATCH):
            store = self._state.need_store("renew_room")
            for player in await store.renew_room(room.name, players[i : i + BATCH]):
                self._put_back(room, player)

    def _put_back(self, room: Room, player: str) -> None:
        if player in room.sessions:
            self._writer.player(room.name, player)
            for publication in room.publications_of(player):
                self._writer.publication(room.name, player, publication)
