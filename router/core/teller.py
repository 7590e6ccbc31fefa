"""Tells players: one encoding per message, put on every wire concerned, without waiting for any of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from router.core.facts import Fact
from router.core.notices import notice
from router.core.room import Room
from router.core.rooms import HostedRooms
from shared.messages.base import Message

Encode = Callable[[Message], bytes]


class Teller:
    """Puts news on the wires of this router's players."""

    def __init__(self, rooms: HostedRooms, *, encode: Encode) -> None:
        self._rooms = rooms
        self._encode = encode

    def tell(self, facts: Iterable[Fact]) -> int:
        """Tell the players of each room that the facts concern; how many were told.

        Facts come from the directory, which has applied them; call this in the same step of the event loop (D3).
        """
        told = 0
        for fact in facts:
            message = notice(fact)
            if message is None:
                continue
            frame = self._encode(message)
            for room in self._rooms.touching(fact.sfu):
                told += self._send_all(room, frame)
        return told

    def update(self, room: Room) -> int:
        """Send a room's gathered changes to its players here; how many were told."""
        update = room.take_update()
        return 0 if update is None else self._send_all(room, self._encode(update))

    @staticmethod
    def _send_all(room: Room, frame: bytes) -> int:
        told = 0
        for session in room.sessions.values():
            if session.wire is not None:
                session.wire.put(frame)
                told += 1
        return told
