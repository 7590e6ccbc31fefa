"""Rooms in the store: players on leases, publications with generations. All changes are transactions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from shared.keys import PLAYER_LEASE_S, ROOM_TTL_S
from shared.records import PlayerRecord, PublicationRecord, RoomPlacement, write_record
from shared.store.answers import EnteredRoom, RoomRecord
from shared.store.calls import Argument, Calls, WrongType, text

LEASE_MS = PLAYER_LEASE_S * 1000
ROOM_MS = ROOM_TTL_S * 1000
ROOMS_A_CALL = 200
"""Rooms whose versions one call reads: keeps a script under a millisecond or so."""


class Rooms(Calls):
    """Reads and writes of rooms."""

    async def enter_room(self, room: str, player: PlayerRecord) -> EnteredRoom:
        """Begin a session: it gets an epoch and a lease, and older sessions of its identity leave."""
        record = write_record(msgspec.structs.replace(player, epoch=0))
        answer = await self._room("enter_room", room, LEASE_MS, player.player, player.identity, record)
        return EnteredRoom(int(answer[0]), tuple(text(raw) for raw in answer[1:]))

    async def put_player(self, room: str, player: PlayerRecord) -> bool:
        """Write a player and renew its lease; False when a newer session of its identity is known."""
        facts = (player.player, player.identity, player.epoch, write_record(player))
        return bool(await self._room("put_player", room, LEASE_MS, *facts))

    async def leave_room(self, room: str, player: str) -> None:
        """End a session: the player goes, with its publications."""
        await self._room("leave_room", room, player)

    async def renew_room(self, room: str, players: Sequence[str]) -> tuple[str, ...]:
        """Renew the leases of these players; returns those that are not there, for the caller to put back."""
        return tuple(text(raw) for raw in await self._room("renew_room", room, LEASE_MS, *players))

    async def put_publication(self, room: str, publication: PublicationRecord) -> bool:
        """Write a publication; False when one of an equal or higher generation with other content is stored."""
        it = publication
        facts = (it.publication, it.player, it.generation, it.kind, it.source, it.sfu, write_record(it))
        return bool(await self._room("put_publication", room, LEASE_MS, *facts))

    async def remove_publication(self, room: str, publication: str, player: str) -> None:
        """End a publication of that player; one of another player stays."""
        await self._room("remove_publication", room, publication, player)

    async def read_room(self, room: str) -> RoomRecord:
        """The whole room; players whose lease ran out have left with their publications."""
        try:
            flat = await self._room("read_room", room)
        except WrongType:
            return RoomRecord()
        fields = {text(flat[i]): flat[i + 1] for i in range(0, len(flat), 2)}
        return self._room_record(self.keys.room(room), fields)

    async def room_versions(self, rooms: Sequence[str]) -> dict[str, int]:
        """The version of each room, 0 for one that is not there; leases that ran out end here too."""
        versions: dict[str, int] = {}
        for i in range(0, len(rooms), ROOMS_A_CALL):
            part = rooms[i : i + ROOMS_A_CALL]
            keys = [key for room in part for key in (self.keys.room(room), self.keys.room_leases(room))]
            answer = await self._run("room_versions", keys, ROOM_MS)
            versions |= {room: _version(raw) for room, raw in zip(part, answer, strict=True)}
        return versions

    async def _room(self, name: str, room: str, *args: Argument) -> Any:
        return await self._run(name, [self.keys.room(room), self.keys.room_leases(room)], ROOM_MS, *args)

    def _room_record(self, key: str, fields: dict[str, bytes]) -> RoomRecord:
        players: dict[str, PlayerRecord] = {}
        publications: dict[str, PublicationRecord] = {}
        for name, raw in fields.items():
            if name.startswith("p:"):
                if player := self._record(PlayerRecord, raw, f"{key} {name}"):
                    players[name[2:]] = player
            elif name.startswith("b:") and (publication := self._record(PublicationRecord, raw, f"{key} {name}")):
                publications[name[2:]] = publication
        placement = self._record(RoomPlacement, fields["place"], f"{key} place") if "place" in fields else None
        return RoomRecord(_version(fields.get("version", b"0")), players, publications, placement)


def _version(raw: bytes) -> int:
    return int(raw) if raw.isdigit() else 0
