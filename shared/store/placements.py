"""Placements in the store: one SFU a room, what is in flight to each SFU, which of them fail, and the history."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from shared.errors import BadRecord
from shared.keys import PLACEMENTS_KEPT, ROOM_TTL_S
from shared.placement_records import PlacementRecord
from shared.placing import (
    IN_FLIGHT_LIFE_S,
    REPORTS_UNTIL_SHOWN,
    TOO_FAST,
    Counts,
    Failing,
    FailureRule,
    InFlightThere,
    PlacedRoom,
    TooFast,
    Tries,
    Version,
    Wish,
)
from shared.records import RoomPlacement, write_record
from shared.store.calls import Argument, Calls, WrongType, text

ROOM_MS = ROOM_TTL_S * 1000
MAX_TRIES = 1000
"""Players remembered for one SFU's share of failures; of more the last ones count."""
_HEAD = re.compile(r"\d{1,18} \d{1,9} \d{1,9}(;|$)")
_COUNTS = re.compile(r";(\d{1,19}) (\d{1,19}) (\d{1,9}) (\d{1,9}) \d{1,18}(?=;|$)")


class Placements(Calls):
    """Reads and writes of placements."""

    async def place_room(self, room: str, wish: Wish) -> PlacedRoom:
        """The room's SFU: the one it has unless that is refused, else the best of the offers (P2, P3).

        The best has the smallest `Offer.key`, with what all routers have in flight to it (P4); ties go by the order
        given. All who ask at the same moment get the same answer. `wish` must offer something. Raises `TooFast` when
        the best of it is over the cap on joins and the wish says that there is more.
        """
        offers = wish.all
        if not offers:
            raise ValueError("place_room needs at least one offer")
        keys = [self.keys.room(room), self.keys.room_leases(room), *(self.keys.in_flight(o.sfu) for o in offers)]
        head = (
            wish.join,
            wish.per_room,
            REPORTS_UNTIL_SHOWN,
            wish.max_joins_per_s,
            TOO_FAST,
            IN_FLIGHT_LIFE_S * 1000,
            wish.more,
        )
        args: list[Argument] = [ROOM_MS, *(_number(value) for value in head), len(wish.refuse), *wish.refuse]
        for offer in offers:
            args += [offer.sfu, msgspec.json.encode({"sfu": offer.sfu}), *(max(0, n) for n in offer.version)]
            args += [offer.rank, repr(offer.figure), repr(offer.cost)]
        raw, fresh, *told = await self._run("place_room", keys, *args)
        kept = zip((offer.sfu for offer in offers), told[::2], told[1::2], strict=True)
        in_flight = {sfu: self._in_flight(sfu, record, int(rate) / 1000) for sfu, record, rate in kept}
        if not raw:
            raise TooFast(in_flight)
        placement = self._record(RoomPlacement, raw, keys[0])
        if placement is None:
            raise WrongType(operation="place_room", detail="the room's placement can't be read")
        return PlacedRoom(placement=placement, fresh=bool(fresh), in_flight=in_flight)

    async def count_join(self, sfu: str, version: Version) -> InFlightThere:
        """Count a join that went to another SFU than its room (P4); what is in flight there with it.

        `version`: of the report that decided.
        """
        numbers = (max(0, n) for n in version)
        raw, rate = await self._run("count_join", [self.keys.in_flight(sfu)], *numbers, IN_FLIGHT_LIFE_S * 1000)
        return self._in_flight(sfu, raw, int(rate) / 1000)

    async def note_tries(self, tries: Sequence[Tries], rule: FailureRule) -> list[str]:
        """Count who was sent where and for whom it failed; the SFUs that are left out from now on because of it."""
        keys = [self.keys.failing]
        args: list[Argument] = [int(rule.window_s * 1000), repr(rule.share), rule.players, int(rule.pause_s * 1000)]
        args.append(MAX_TRIES)
        for each in tries:
            incarnation = max(0, each.incarnation)
            keys += [self.keys.tried(each.sfu, incarnation), self.keys.failed(each.sfu, incarnation)]
            args += [each.sfu, incarnation, len(each.tried), *each.tried, len(each.failed), *each.failed]
        return [text(sfu) for sfu in await self._run("note_tries", keys, *args)] if tries else []

    async def read_failing(self) -> list[Failing]:
        """The SFUs to which connections fail for many."""
        try:
            flat = await self._run("read_failing", [self.keys.failing])
        except WrongType:
            return []
        triples = zip(flat[::3], flat[1::3], flat[2::3], strict=True)
        return [
            Failing(sfu=text(sfu), incarnation=int(incarnation), left_s=int(left_ms) / 1000)
            for sfu, incarnation, left_ms in triples
        ]

    async def push_placements(self, records: Sequence[PlacementRecord]) -> None:
        """Keep placements in the history, the last given as the newest."""
        if records:
            raws = [write_record(record) for record in records]
            await self._run("push_placements", [self.keys.placements], PLACEMENTS_KEPT, *raws)

    async def read_placements(self, n: int, *, room: str = "", player: str = "") -> list[PlacementRecord]:
        """The last `n` placements, newest first; of one room, or of one player by identity or session id."""
        key = self.keys.placements
        last = n - 1 if not (room or player) else -1
        try:
            raws = await self._send("read_placements", "LRANGE", key, 0, last) if n > 0 else []
        except WrongType:
            return []
        words = [msgspec.json.encode(word) for word in (room, player) if word]
        found: dict[str, PlacementRecord] = {}
        for raw in raws:
            if len(found) >= n:
                break
            if not all(word in raw for word in words):  # most are not asked for: don't read them at all
                continue
            record = self._record(PlacementRecord, raw, key)
            if record is not None and is_about(record, room=room, player=player):
                found.setdefault(record.id, record)
        return list(found.values())

    def _in_flight(self, sfu: str, raw: bytes, joins_per_s: float) -> InFlightThere:
        """What the script keeps: joins of this second and the last one, then counts by version."""
        if not raw:
            return InFlightThere()
        kept = raw.decode(errors="replace")
        if not _HEAD.match(kept):
            self._note_bad(BadRecord(key=self.keys.in_flight(sfu), detail="not what place_room writes"))
            return InFlightThere()
        counts = {(int(i), int(r)): Counts(int(joins), int(rooms)) for i, r, joins, rooms in _COUNTS.findall(kept)}
        return InFlightThere(counts=counts, joins_per_s=joins_per_s)


def is_about(record: PlacementRecord, *, room: str = "", player: str = "") -> bool:
    """The record is of that room and of that player, by identity or session id; empty: any."""
    return (not room or record.room == room) and (not player or player in (record.identity, record.player))


def _number(value: float | bool) -> str:
    return str(int(value)) if isinstance(value, bool | int) else repr(value)
