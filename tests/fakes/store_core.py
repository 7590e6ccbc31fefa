"""The store in memory, as plain synchronous calls on a clock that a test holds: what the Lua scripts do, in Python."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import msgspec

from shared.errors import BadRecord
from shared.keys import (
    COMMAND_TTL_S,
    DRAIN_REPORTS_KEPT,
    EXIT_TTL_S,
    PLAYER_LEASE_S,
    ROOM_TTL_S,
    ROUTER_TTL_S,
    SFU_TTL_S,
)
from shared.placement_records import PlacementRecord
from shared.placing import Failing, FailureRule, InFlightThere, PlacedRoom, Tries, Version, Wish
from shared.records import (
    DrainReport,
    ExitOrder,
    PlayerRecord,
    PublicationRecord,
    Record,
    RoomPlacement,
    RouterRecord,
    SfuCommand,
    SfuState,
    SfuStatus,
    read_record,
    sfu_id,
    status_of,
    write_record,
)
from shared.store.answers import EnteredRoom, HeardRouter, HeardSfu, PutSfu, RoomRecord, Scaling, Wake
from shared.store.sfus import OWNER_ALIVE_S, STAMPS_TTL_S, fill_stamps
from tests.fakes.placements_core import PlacementsCore

R = TypeVar("R", bound=Record)


@dataclass(slots=True)
class Kept:
    """A record with the end of its lifetime."""

    raw: bytes
    until_at: float


@dataclass(frozen=True, slots=True)
class Stamps:
    """What the store knows of an SFU besides its record."""

    incarnation: int
    until_at: float
    revision: int = 0
    started_at: float | None = None
    cordoned_at: float | None = None
    heard_at: float | None = None
    removed: int | None = None
    boot: str = ""


@dataclass(slots=True)
class Room:
    """One room."""

    version: int = 0
    place: RoomPlacement | None = None
    players: dict[str, bytes] = field(default_factory=dict)
    publications: dict[str, bytes] = field(default_factory=dict)
    owned: dict[str, list[str]] = field(default_factory=dict)
    """Player -> its publications."""
    sessions: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Identity -> epoch and player of its newest session."""
    leases: dict[str, float] = field(default_factory=dict)
    """Player -> when its lease ends."""
    forget: dict[str, float] = field(default_factory=dict)
    """Identity whose session has left -> when its epoch may be forgotten."""
    until_at: float = 0.0


class StoreCore:
    """The same methods as `Store`, synchronous and never failing. Tests may look into and change its fields."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock` stands for the Redis server's [Unix seconds]."""
        self.clock = clock
        self.counts: Counter[str] = Counter()
        self.sfus: dict[str, Kept] = {}
        self.stamps: dict[str, Stamps] = {}
        self.routers: dict[str, Kept] = {}
        self.rooms: dict[str, Room] = {}
        self.roll_next: frozenset[str] = frozenset()
        self.placements = PlacementsCore(lambda: self.clock())
        self.exits: dict[str, ExitOrder] = {}
        self.commands: dict[str, SfuCommand] = {}
        self.reports: list[bytes] = []
        self.since: float | None = None
        self.scaling = Scaling()
        """What a controller would have written; only a test writes it here."""
        self.listeners: list[Callable[[Wake], None]] = []
        self._command_ids = itertools.count(1)

    # --- the server ---

    def now(self) -> float:
        return self.clock()

    def ping(self) -> None:
        return None

    def wake(self, hint: Wake) -> None:
        for listener in list(self.listeners):
            listener(hint)

    def lose_everything(self) -> None:
        """The server was restarted without its data."""
        for kept in (self.sfus, self.stamps, self.routers, self.rooms, self.exits, self.commands):
            kept.clear()
        self.reports.clear()
        self.since = None
        self.placements.lose_everything()

    def _now_ms(self) -> int:
        return int(self.clock() * 1000)

    def _read(self, kind: type[R], raw: bytes) -> R | None:
        try:
            return read_record(kind, raw)
        except BadRecord:
            self.counts["bad-record"] += 1
            return None

    def _drop_expired(self, kept: dict[str, Any]) -> None:
        for name in [name for name, item in kept.items() if item.until_at <= self.clock()]:
            del kept[name]

    # --- SFUs ---

    def put_sfu(self, state: SfuState) -> PutSfu:
        self._drop_expired(self.stamps)
        sfu, now = sfu_id(state), self.clock()
        incarnation, revision = max(0, state.incarnation), max(0, state.revision)
        old = self.stamps.get(sfu)
        if old is not None:
            if old.boot and state.boot not in ("", old.boot) and now - (old.heard_at or 0.0) < OWNER_ALIVE_S:
                return PutSfu(False, old.started_at, old.cordoned_at, old.incarnation, old.revision, taken=True)
            removed = old.removed is not None and incarnation <= old.removed
            if removed or (incarnation, revision) < (old.incarnation, old.revision):
                return PutSfu(False, old.started_at, old.cordoned_at, old.incarnation, old.revision)
        same = old if old is not None and old.incarnation == incarnation else None
        started_at = same.started_at if same else None
        if started_at is None:
            started_at = min(now, now if state.started_at is None else state.started_at)
        cordoned_at = same.cordoned_at if same else None
        status = status_of(state)
        if status is SfuStatus.ONLINE:
            cordoned_at = None
        elif status is not SfuStatus.UNKNOWN and cordoned_at is None:
            since_at = state.drain.since_at if state.drain else None
            cordoned_at = min(now, now if since_at is None else since_at)
        self.sfus[sfu] = Kept(write_record(state), now + SFU_TTL_S)
        news = same is None or incarnation == 0 or same.revision != revision or same.heard_at is None
        heard_at = now if same is None or news else same.heard_at
        self.stamps[sfu] = Stamps(
            incarnation, now + STAMPS_TTL_S, revision, started_at, cordoned_at, heard_at, boot=state.boot
        )
        return PutSfu(True, started_at, cordoned_at, incarnation, revision)

    def read_sfus(self) -> list[SfuState]:
        return [heard.state for heard in self.hear_sfus()]

    def hear_sfus(self) -> list[HeardSfu]:
        self._drop_expired(self.sfus)
        self._drop_expired(self.stamps)
        states: list[HeardSfu] = []
        for sfu, kept in sorted(self.sfus.items()):
            state = self._read(SfuState, kept.raw)
            if state is None:
                continue
            if state.sfu and state.sfu != sfu:
                self.counts["bad-record"] += 1
                continue
            if sfu_id(state) != sfu:
                state = msgspec.structs.replace(state, sfu=sfu)
            stamps = self.stamps.get(sfu)
            if stamps is not None and stamps.incarnation == max(0, state.incarnation):
                state = fill_stamps(state, stamps.started_at, stamps.cordoned_at)
                silent = None if stamps.heard_at is None else max(0.0, self.clock() - stamps.heard_at)
                states.append(HeardSfu(state, silent_for_s=silent))
            else:
                states.append(HeardSfu(state))
        return states

    def remove_sfu(self, sfu: str, incarnation: int) -> bool:
        self._drop_expired(self.stamps)
        old = self.stamps.pop(sfu, None)
        if old is not None and old.incarnation > max(0, incarnation):
            self.stamps[sfu] = old
            return False
        self.sfus.pop(sfu, None)
        if incarnation > 0:
            self.stamps[sfu] = Stamps(incarnation, self.clock() + SFU_TTL_S, removed=incarnation)
        return True

    # --- the autoscaler ---

    def read_scaling(self, n: int) -> Scaling:
        return replace(self.scaling, records=self.scaling.records[: max(0, n)])

    # --- rooms ---

    def place_room(self, room: str, wish: Wish) -> PlacedRoom:
        it = self._room(room)
        standing = None if it.place is None or it.place.sfu in wish.refuse else it.place
        sfu, in_flight = self.placements.choose(wish, standing.sfu if standing else None)
        if standing is None:
            standing = it.place = RoomPlacement(sfu=sfu, generation=it.place.generation + 1 if it.place else 1)
            self._changed(it)
            return PlacedRoom(placement=standing, fresh=True, in_flight=in_flight)
        return PlacedRoom(placement=standing, in_flight=in_flight)

    def count_join(self, sfu: str, version: Version) -> InFlightThere:
        return self.placements.count_join(sfu, version)

    def note_tries(self, tries: Sequence[Tries], rule: FailureRule) -> list[str]:
        return self.placements.note_tries(tries, rule)

    def read_failing(self) -> list[Failing]:
        return self.placements.read_failing()

    def read_roll_next(self) -> frozenset[str]:
        return self.roll_next

    def push_placements(self, records: Sequence[PlacementRecord]) -> None:
        self.placements.push(records)

    def read_placements(self, n: int, room: str = "", player: str = "") -> list[PlacementRecord]:
        return self.placements.read(n, room, player)

    def enter_room(self, room: str, player: PlayerRecord) -> EnteredRoom:
        it = self._room(room)
        last, holder = it.sessions.get(player.identity, (0, None))
        epoch = max(last + 1, self._now_ms())
        replaced = (holder,) if holder is not None and holder != player.player and holder in it.players else ()
        for session in replaced:
            self._drop_player(it, session)
        it.players[player.player] = write_record(msgspec.structs.replace(player, epoch=epoch))
        self._begin(it, player, epoch)
        self._changed(it)
        return EnteredRoom(epoch, replaced)

    def put_player(self, room: str, player: PlayerRecord) -> bool:
        it = self._room(room)
        if player.identity in it.sessions:
            last, holder = it.sessions[player.identity]
            if last > player.epoch or (last == player.epoch and holder != player.player):
                return False
            if holder != player.player:
                self._drop_player(it, holder)
        self._begin(it, player, player.epoch)
        raw = write_record(player)
        if it.players.get(player.player) != raw:
            it.players[player.player] = raw
            self._changed(it)
        return True

    def leave_room(self, room: str, player: str) -> None:
        it = self._room(room)
        if player in it.players or player in it.owned:
            self._drop_player(it, player)
            self._changed(it)

    def renew_room(self, room: str, players: Sequence[str]) -> tuple[str, ...]:
        it = self._room(room)
        it.leases |= {player: self.clock() + PLAYER_LEASE_S for player in players if player in it.players}
        return tuple(player for player in players if player not in it.players)

    def put_publication(self, room: str, publication: PublicationRecord) -> bool:
        it, new = self._room(room), publication
        stands = self._read(PublicationRecord, it.publications.get(new.publication, b"{}"))
        if stands is not None:
            owned = new.publication in it.owned.get(stands.player, ())
            if (stands.player != new.player and owned) or stands.generation > new.generation:
                return False
            if stands.generation == new.generation:
                return _content(stands) == _content(new)
        it.publications[new.publication] = write_record(new)
        owned_now = it.owned.setdefault(new.player, [])
        if new.publication not in owned_now:
            owned_now.append(new.publication)
        it.leases.setdefault(new.player, self.clock() + PLAYER_LEASE_S)
        self._changed(it)
        return True

    def remove_publication(self, room: str, publication: str, player: str) -> None:
        it = self._room(room)
        if publication in it.owned.get(player, ()):
            it.owned[player].remove(publication)
            it.publications.pop(publication, None)
            self._changed(it)

    def read_room(self, room: str) -> RoomRecord:
        it = self._swept(room)
        if it is None:
            return RoomRecord()
        players = {name: self._read(PlayerRecord, raw) for name, raw in it.players.items()}
        publications = {name: self._read(PublicationRecord, raw) for name, raw in it.publications.items()}
        return RoomRecord(
            it.version,
            {name: record for name, record in players.items() if record},
            {name: record for name, record in publications.items() if record},
            it.place,
        )

    def room_versions(self, rooms: Sequence[str]) -> dict[str, int]:
        return {room: it.version if (it := self._swept(room)) else 0 for room in rooms}

    def _room(self, room: str) -> Room:
        self._drop_expired(self.rooms)
        it = self.rooms.setdefault(room, Room())
        it.until_at = self.clock() + ROOM_TTL_S
        return it

    def _swept(self, room: str) -> Room | None:
        self._drop_expired(self.rooms)
        it = self.rooms.get(room)
        if it is None:
            return None
        gone = [player for player, ends_at in it.leases.items() if ends_at <= self.clock()]
        for player in gone:
            self._drop_player(it, player)
        if gone:
            self._changed(it)
        for identity in [identity for identity, at in it.forget.items() if at <= self.clock()]:
            del it.forget[identity]
            it.sessions.pop(identity, None)
        return it

    def _changed(self, it: Room) -> None:
        it.version = max(it.version + 1, self._now_ms())

    def _begin(self, it: Room, player: PlayerRecord, epoch: int) -> None:
        it.sessions[player.identity] = (epoch, player.player)
        it.forget.pop(player.identity, None)
        it.leases[player.player] = self.clock() + PLAYER_LEASE_S

    def _drop_player(self, it: Room, player: str) -> None:
        raw = it.players.pop(player, None)
        for publication in it.owned.pop(player, ()):
            it.publications.pop(publication, None)
        it.leases.pop(player, None)
        record = self._read(PlayerRecord, raw) if raw else None
        if record and it.sessions.get(record.identity, (0, ""))[1] == player:
            it.forget[record.identity] = self.clock() + ROOM_TTL_S

    # --- operators ---

    def order_exit(self, scope: str, target: str, by: str) -> ExitOrder:
        name = f"{scope}:{target}"
        at = max(self.clock(), self.exits[name].at if name in self.exits else 0.0)
        self.exits[name] = ExitOrder(scope=str(scope), at=at, target=target, by=by)
        return self.exits[name]

    def read_exits(self) -> list[ExitOrder]:
        return [order for order in self.exits.values() if order.at > self.clock() - EXIT_TTL_S]

    def command_sfu(self, verb: str, sfu: str, by: str, reason: str) -> SfuCommand:
        at = max(self.clock(), self.commands[sfu].at if sfu in self.commands else 0.0)
        command = f"command-{next(self._command_ids)}"
        self.commands[sfu] = SfuCommand(command=command, verb=str(verb), sfu=sfu, by=by, reason=reason, at=at)
        return self.commands[sfu]

    def read_commands(self, sfus: Sequence[str]) -> list[SfuCommand]:
        wanted = (self.commands[sfu] for sfu in sfus if sfu in self.commands)
        return [command for command in wanted if command.at > self.clock() - COMMAND_TTL_S]

    def push_drain_report(self, report: DrainReport) -> None:
        raw = write_record(report)
        if raw not in self.reports[:100]:
            self.reports.insert(0, raw)
            del self.reports[DRAIN_REPORTS_KEPT:]

    def read_drain_reports(self, n: int) -> list[DrainReport]:
        return [report for raw in self.reports[: max(0, n)] if (report := self._read(DrainReport, raw))]

    # --- routers ---

    def put_router(self, router: RouterRecord) -> None:
        self.routers[router.router] = Kept(write_record(router), self.clock() + ROUTER_TTL_S)
        self.since = self.clock() if self.since is None else self.since

    def read_routers(self) -> list[RouterRecord]:
        return [heard.router for heard in self.hear_routers()]

    def hear_routers(self) -> list[HeardRouter]:
        self._drop_expired(self.routers)
        records = [(self._read(RouterRecord, kept.raw), kept.until_at) for _, kept in sorted(self.routers.items())]
        now = self.clock()
        return [
            HeardRouter(record, silent_for_s=now - until_at + ROUTER_TTL_S) for record, until_at in records if record
        ]

    def known_since(self) -> float | None:
        return self.since

    def remove_router(self, router: str) -> None:
        self.routers.pop(router, None)


def _content(publication: PublicationRecord) -> tuple[str, str, str, str]:
    return (publication.player, publication.kind, publication.source, publication.sfu)
