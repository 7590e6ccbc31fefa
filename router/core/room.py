"""One room as this router sees it: what Redis says, merged with what its own players have just done.

For players whose websocket is here this router is right; for all others Redis is. What changes is gathered, and taken
once per update interval as one `room-update`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from router.core.kept_ids import KeptIds
from router.core.sessions import Session
from shared.messages.player import RoomSnapshot, RoomUpdate
from shared.records import PlayerRecord, PublicationRecord, RoomPlacement

MAX_PUBLICATIONS = 32
"""Publications of one player."""
DEPARTED_KEPT = 64
KEEP_ABSENT_S = 20.0
"""After Redis may have lost records, time for every router to put back what is its own."""


@dataclass(slots=True)
class Merged:
    """What a reading of Redis means for the sessions here."""

    replaced: list[Session] = field(default_factory=list)
    """A newer session of the identity exists elsewhere; close these."""
    moved: list[Session] = field(default_factory=list)
    """Resumed on another router; let go of these."""
    missing_players: list[str] = field(default_factory=list)
    """Players here whose record Redis has lost."""
    missing_publications: list[str] = field(default_factory=list)
    """Publications of players here whose record Redis has lost or not got yet."""


class Room:
    """Players, publications and placement of one room, and the sessions of it that are here."""

    __slots__ = (
        "_departed",
        "_dirty_players",
        "_dirty_publications",
        "_sfus",
        "keep_until",
        "keeps_absent",
        "kept_ids",
        "name",
        "placement",
        "players",
        "publications",
        "sessions",
        "version",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.players: dict[str, PlayerRecord] = {}
        self.publications: dict[str, PublicationRecord] = {}
        self.sessions: dict[str, Session] = {}
        self.placement: RoomPlacement | None = None
        self.version = 0
        """The version of the last reading of Redis; 0: none yet."""
        self.kept_ids = KeptIds()
        self.keep_until = 0.0
        """Until then no player counts as gone for not being listed in Redis, which may have lost it (invariant 5)."""
        self.keeps_absent = False
        """A player or publication was kept for that reason alone; read the room again after `keep_until`."""
        self._dirty_players: set[str] = set()
        self._dirty_publications: set[str] = set()
        self._departed: dict[str, None] = {}
        self._sfus: frozenset[str] | None = None

    # --- changes made here ---

    def attach(self, session: Session, record: PlayerRecord) -> None:
        """A session of this room begins or continues here."""
        self._departed.pop(record.player, None)
        self.sessions[record.player] = session
        self.put_player(record)

    def move(self, session: Session, sfu: str) -> None:
        """The player was told to move to `sfu`, so news of that SFU concern it from now on."""
        session.next_sfu = sfu
        self._sfus = None

    def detach_all(self, player: str) -> None:
        """The session is over: the player and its publications are gone, also from readings that are on their way."""
        self.sessions.pop(player, None)
        self._departed[player] = None
        while len(self._departed) > DEPARTED_KEPT:
            del self._departed[next(iter(self._departed))]
        self.drop_player(player)

    def put_player(self, record: PlayerRecord) -> bool:
        """True when that is a change."""
        if self.players.get(record.player) == record:
            return False
        self.players[record.player] = record
        self._dirty_players.add(record.player)
        self._sfus = None
        return True

    def drop_player(self, player: str) -> None:
        """The player is gone, with its publications."""
        record = self.players.pop(player, None)
        if record is not None:
            self._dirty_players.add(player)
            self._sfus = None
        is_back = record is not None and any(other.identity == record.identity for other in self.players.values())
        for publication in self.publications_of(player):
            self.drop_publication(publication)
            if record is not None and is_back:
                self.kept_ids.keep(publication, record.identity)
        if record is not None and not is_back:
            self.kept_ids.free(record.identity)

    def put_publication(self, record: PublicationRecord) -> bool:
        """True when that is a change; an older generation never is."""
        known = self.publications.get(record.publication)
        if known == record or (known is not None and known.generation > record.generation):
            return False
        self.publications[record.publication] = record
        self.kept_ids.published(record.publication)
        self._dirty_publications.add(record.publication)
        self._sfus = None
        return True

    def drop_publication(self, publication: str) -> None:
        """The publication has ended."""
        if self.publications.pop(publication, None) is not None:
            self._dirty_publications.add(publication)
            self._sfus = None

    def place(self, placement: RoomPlacement) -> None:
        """Where new work goes, unless something newer is known."""
        if self.placement is None or placement.generation >= self.placement.generation:
            self.placement = placement
            self._sfus = None

    # --- what Redis says ---

    def merge(
        self,
        *,
        version: int,
        players: Mapping[str, PlayerRecord],
        publications: Mapping[str, PublicationRecord],
        placement: RoomPlacement | None,
        router: str,
        now: float,
    ) -> Merged:
        """Take over a reading. An older one than the last is ignored, unless Redis may have lost its data."""
        merged = Merged()
        if version and version < self.version and now >= self.keep_until:
            return merged
        if not version and self.version:
            self.keep_until = max(self.keep_until, now + KEEP_ABSENT_S)
        self.version = version
        if placement is not None and (now >= self.keep_until or not self.placement):
            self.placement, self._sfus = placement, None  # Redis decides (P3)
        elif placement is not None:
            self.place(placement)
        for player, record in players.items():
            self._merge_player(player, record, router=router, merged=merged)
        gone_here = {session.player for session in (*merged.replaced, *merged.moved)}
        for publication, pub in publications.items():
            self._merge_publication(publication, pub, gone_here)
        self._note_missing(players, publications, gone_here, merged)
        self._drop_absent(players, publications, keep=now < self.keep_until)
        return merged

    def _merge_player(self, player: str, record: PlayerRecord, *, router: str, merged: Merged) -> None:
        session = self.sessions.get(player)
        if session is not None:
            if record.router == router:
                session.taken_over_blind = False
            elif session.taken_over_blind and session.wire is not None:
                return  # written before the player came to us; our own word is on its way
            elif record.epoch >= session.claims.epoch:
                merged.moved.append(session)
                self.put_player(record)
            return
        if player in self._departed:
            return
        known = self.players.get(player)
        if known is not None and known.epoch > record.epoch:
            return
        if self.put_player(record):
            merged.replaced += [
                other
                for other in self.sessions.values()
                if other.claims.identity == record.identity and other.claims.epoch < record.epoch
            ]

    def _merge_publication(self, publication: str, record: PublicationRecord, gone_here: set[str]) -> None:
        if record.player in self._departed:
            return
        ours = record.player in self.sessions and record.player not in gone_here
        if ours and publication not in self.publications:
            return  # its end is on the way to Redis
        self.put_publication(record)

    def _note_missing(
        self,
        players: Mapping[str, PlayerRecord],
        publications: Mapping[str, PublicationRecord],
        gone_here: set[str],
        merged: Merged,
    ) -> None:
        merged.missing_players = [
            player for player in self.sessions if player not in players and player not in gone_here
        ]
        for publication, record in self.publications.items():
            if record.player not in self.sessions or record.player in gone_here:
                continue
            stored = publications.get(publication)
            if stored is None or stored.generation < record.generation:
                merged.missing_publications.append(publication)

    def _drop_absent(
        self, players: Mapping[str, PlayerRecord], publications: Mapping[str, PublicationRecord], *, keep: bool
    ) -> None:
        gone = [player for player in self.players if player not in players and player not in self.sessions]
        ended = [
            publication
            for publication, record in self.publications.items()
            if publication not in publications and record.player not in self.sessions
        ]
        self.keeps_absent = keep and bool(gone or ended)
        if keep:
            return
        for player in gone:
            self.drop_player(player)
        for publication in ended:
            self.drop_publication(publication)

    # --- questions ---

    @property
    def sfus(self) -> frozenset[str]:
        """Every SFU this room touches: homes of its players, carriers of its publications, its placement."""
        if self._sfus is None:
            used = {record.sfu for record in self.players.values()}
            used.update(record.sfu for record in self.publications.values())
            used.update(session.next_sfu for session in self.sessions.values())
            if self.placement is not None:
                used.add(self.placement.sfu)
            used.discard("")
            self._sfus = frozenset(used)
        return self._sfus

    def carriers(self) -> set[str]:
        """SFUs that carry a publication of the room, and the one its new work goes to: what a visitor may enter."""
        carriers = {record.sfu for record in self.publications.values() if record.sfu}
        if self.placement is not None:
            carriers.add(self.placement.sfu)
        return carriers

    def publications_of(self, player: str) -> list[str]:
        """Ids of a player's publications."""
        return [publication for publication, record in self.publications.items() if record.player == player]

    def is_of(self, player: str, identity: str) -> bool:
        """That session is one of that person's."""
        record = self.players.get(player)
        return record is not None and record.identity == identity

    def owned_by(self, player: str, identity: str) -> list[str]:
        """Ids of a player's publications, and of those that older sessions of the person have left."""
        own = [
            p
            for p, record in self.publications.items()
            if record.player == player or self.is_of(record.player, identity)
        ]
        return own + self.kept_ids.of(identity)

    def older_sessions(self, identity: str, *, than: str, also: Iterable[str] = ()) -> list[Session]:
        """Sessions here of the same identity other than `than`, and those named in `also`."""
        named = set(also)
        return [
            session
            for session in self.sessions.values()
            if session.player != than and (session.claims.identity == identity or session.player in named)
        ]

    def snapshot(self) -> RoomSnapshot:
        """The whole room."""
        return RoomSnapshot(players=tuple(self.players.values()), publications=tuple(self.publications.values()))

    @property
    def changed(self) -> bool:
        """There is something for `take_update`."""
        return bool(self._dirty_players or self._dirty_publications)

    def take_update(self) -> RoomUpdate | None:
        """All changes since the last update; None when there are none."""
        if not self.changed:
            return None
        dirty_players, dirty_publications = self._dirty_players, self._dirty_publications
        self._dirty_players, self._dirty_publications = set(), set()
        return RoomUpdate(
            players=tuple(self.players[p] for p in sorted(dirty_players) if p in self.players),
            left=tuple(sorted(p for p in dirty_players if p not in self.players)),
            publications=tuple(self.publications[p] for p in sorted(dirty_publications) if p in self.publications),
            ended=tuple(sorted(p for p in dirty_publications if p not in self.publications)),
        )
