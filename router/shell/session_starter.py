"""How sessions begin: `join` with the app's token, `resume` with a resume token of any router."""

from __future__ import annotations

import asyncio
import secrets

import msgspec

from router.core import bounds
from router.core.join_pace import JoinPace
from router.core.notices import cordoned_message
from router.core.plan import Ask
from router.core.room import Room
from router.core.selector.decision import PlacementDecision
from router.core.sessions import Session
from router.shell.placing import Placing
from router.shell.room_reader import RoomReader
from router.shell.sessions import Sessions
from router.shell.state import RouterState
from router.shell.store_writer import StoreWriter
from router.shell.updates import Updates
from router.shell.wire import WireConnection, ws_frame
from shared.errors import StoreUnavailable
from shared.messages.codes import CloseCode, Refusal
from shared.messages.player import AssignedSfu, Failed, Join, Resume, Welcome
from shared.records import PlayerRecord, PublicationRecord
from shared.store.answers import EnteredRoom, RoomRecord
from shared.tokens import RESUME_TOKEN_TTL_S, PlayerClaims, ResumeClaims, issue, verify

AT_ONCE = 16
"""Players for whom Redis is asked at the same time: half of the calls that it takes at once."""
RETRY_AFTER_S = 1.0
"""When a player that got no SFU should ask again, before its own jitter."""


class SessionStarter:
    """Begins sessions on this router."""

    def __init__(
        self,
        state: RouterState,
        *,
        sessions: Sessions,
        placing: Placing,
        writer: StoreWriter,
        updates: Updates,
        reader: RoomReader,
    ) -> None:
        self._state = state
        self._sessions = sessions
        self._placing = placing
        self._writer = writer
        self._updates = updates
        self._reader = reader
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._pace = JoinPace(per_minute=state.config.max_joins_per_minute)

    async def begin(self, wire: WireConnection, message: Join | Resume) -> Session | None:
        """The session that a first message begins or continues. Raises `BadToken`.

        A player that comes with a crowd waits for its turn here, where waiting is no failure, and not at the store. Its
        token is looked at before, so that it does not lose its seat meanwhile.
        """
        secret, now_at = self._state.config.secret, self._state.wall()
        if isinstance(message, Resume):
            claims = verify(ResumeClaims, message.resume_token, secret=secret, now_at=now_at)
            wire.let_in()
            async with self._turns:
                return await self._resume(wire, message, claims) if wire.alive else None
        grants = verify(PlayerClaims, message.token, secret=secret, now_at=now_at)
        if not self._pace.take(grants.room, grants.identity, now=self._state.mono()):
            self._too_often(wire)
            return None
        wire.let_in()
        async with self._turns:
            return await self._join(wire, message, grants) if wire.alive else None  # it may have given up waiting

    async def _join(self, wire: WireConnection, message: Join, grants: PlayerClaims) -> Session:
        state = self._state
        claims = ResumeClaims(
            player=secrets.token_urlsafe(9),
            room=grants.room,
            identity=grants.identity,
            epoch=0,
            name=grants.name,
            publish=grants.publish,
            subscribe=grants.subscribe,
            admin=grants.admin,
            cell=grants.cell or bounds.word(message.cell),
        )
        session = Session(claims, wire=None, home_at=state.wall())
        record = PlayerRecord(
            player=claims.player, identity=claims.identity, name=claims.name, presence=message.presence
        )
        entered = await self._enter(session, record)
        seen = await self._read_unless_hosted(claims.room)
        session.claims = msgspec.structs.replace(claims, epoch=entered.epoch)

        def deliver(decision: PlacementDecision) -> None:
            room = self._room(session.room, seen)
            self._attach(session, room, wire, record, sfu=decision.chosen)
            for older in room.older_sessions(claims.identity, than=claims.player, also=entered.replaced):
                self._sessions.replaced(older)
            self._welcome(session, wire, resumed=False, sfu=decision.chosen)
            if decision.chosen is None:
                wire.put(ws_frame(no_sfu()))

        ask = Ask(room=claims.room, exclude=bounds.excluded(message.exclude))
        await self._placing.place(ask, session=session, deliver=deliver, seen=seen)
        return session

    def _too_often(self, wire: WireConnection) -> None:
        """Refuse it, in words, before it costs anything."""
        bound = self._state.config.max_joins_per_minute
        self._state.metrics.refused.labels("player", "too-many-joins").inc()
        self._state.trouble.warning("player-too-many-joins", f"an identity joined more than {bound} times in a minute")
        sentence = f"this identity joined {bound} times in a minute; wait (the operator's max_joins_per_minute)"
        wire.put(ws_frame(Failed(code=Refusal.TOO_MANY, message=sentence, retry_after_s=60 / bound)))
        wire.end(CloseCode.TOO_FAST, "too many joins")

    async def _resume(self, wire: WireConnection, message: Resume, claims: ResumeClaims) -> Session | None:
        """The session, or None when it can't continue here and the websocket is being closed."""
        state = self._state
        if state.rooms.has_ended(claims.player):
            self._not_resumable(wire)
            return None
        room = state.rooms.get(claims.room)
        local = room.sessions.get(claims.player) if room else None
        if room is not None and local is not None:
            if local.wire is not None:
                local.wire.end(CloseCode.REPLACED, "resumed on another websocket")
            return await self._take_up(local, wire, message, room.players[claims.player], None)
        return await self._take_over(wire, message, claims)

    async def _take_over(self, wire: WireConnection, message: Resume, claims: ResumeClaims) -> Session | None:
        """Continue a session of another router, which may be dead."""
        seen = await self._read(claims.room)
        stored = seen.players.get(claims.player) if seen else None
        if stored is None:
            if seen and any(p.identity == claims.identity and p.epoch > claims.epoch for p in seen.players.values()):
                wire.end(CloseCode.REPLACED, "a newer session of this identity took over")
                return None
            if seen is not None and not self._state.recovering:
                self._not_resumable(wire)
                return None
        epoch = max(claims.epoch, stored.epoch if stored else 0)
        session = Session(msgspec.structs.replace(claims, epoch=epoch), wire=None, home_at=self._state.wall())
        record = session.record(router=self._state.config.router, known=stored)
        try:
            if not await self._state.need_store("resume").put_player(claims.room, record):
                wire.end(CloseCode.REPLACED, "a newer session of this identity took over")
                return None
            seen = await self._read(claims.room)
        except StoreUnavailable:
            pass  # put back when Redis is
        return await self._take_up(session, wire, message, record, seen)

    async def _take_up(
        self, session: Session, wire: WireConnection, message: Resume, record: PlayerRecord, seen: RoomRecord | None
    ) -> Session:
        record = msgspec.structs.replace(record, presence=message.presence)
        if (sfu := self._still_right(message.sfu)) is not None:
            self._continue(session, wire, message, record, seen, sfu=sfu, assigned=None)
            return session

        def deliver(decision: PlacementDecision) -> None:
            self._continue(session, wire, message, record, seen, sfu=decision.chosen, assigned=decision.chosen)
            if decision.chosen is None:
                wire.put(ws_frame(no_sfu()))

        ask = Ask(room=session.room, reason="resume")
        await self._placing.place(ask, session=session, deliver=deliver, seen=seen)
        return session

    def _still_right(self, sfu: str) -> str | None:
        """The SFU a resuming player is on, if there is no reason to think that it is gone. Cordoned is no reason."""
        if not sfu or len(sfu) > bounds.MAX_SFU_ID:
            return None
        directory = self._state.directory
        return sfu if sfu in directory or not len(directory) else None

    def _continue(
        self,
        session: Session,
        wire: WireConnection,
        message: Resume,
        record: PlayerRecord,
        seen: RoomRecord | None,
        *,
        sfu: str | None,
        assigned: str | None,
    ) -> None:
        """Attach and welcome, in one step of the event loop."""
        if self._state.rooms.has_ended(session.player):  # meanwhile
            self._not_resumable(wire)
            return
        room = self._room(session.room, seen)
        self._attach(session, room, wire, record, sfu=sfu)
        self._adopt(session, room, message, seen)
        self._welcome(session, wire, resumed=True, sfu=assigned)

    def _adopt(self, session: Session, room: Room, message: Resume, seen: RoomRecord | None) -> None:
        """Its publications: as Redis has them, then as the player says, which knows best."""
        for publication in (seen.publications if seen else {}).values():
            if publication.player == session.player:
                room.put_publication(publication)
        said = bounds.resumed_publications(message.publications, session, known_sfus=self._state.directory.ids)
        for publication in said:
            self._adopt_one(session, room, publication)
        if said:
            kept = {publication.publication for publication in said}
            for publication_id in [p for p in room.publications_of(session.player) if p not in kept]:
                room.drop_publication(publication_id)
                self._writer.publication(room.name, session.player, publication_id)
        self._updates.soon(room)

    def _adopt_one(self, session: Session, room: Room, said: PublicationRecord) -> None:
        if not room.kept_ids.may_publish(said.publication, session.claims.identity):
            return
        known = room.publications.get(said.publication)
        if known is not None and (known.player != session.player or known.generation >= said.generation):
            return
        room.put_publication(said)
        self._writer.publication(room.name, session.player, said.publication)

    # --- common ---

    async def _enter(self, session: Session, record: PlayerRecord) -> EnteredRoom:
        """Redis' answer, or our guess while it is away: the wall clock is what Redis would take as well."""
        record = msgspec.structs.replace(record, router=self._state.config.router)
        try:
            return await self._state.need_store("enter_room").enter_room(session.room, record)
        except StoreUnavailable:
            session.provisional = True
            room = self._state.rooms.get(session.room)
            known = [p.epoch for p in room.players.values() if p.identity == record.identity] if room else []
            return EnteredRoom(max([int(self._state.wall() * 1000), *(epoch + 1 for epoch in known)]))

    async def _read_unless_hosted(self, name: str) -> RoomRecord | None:
        room = self._state.rooms.get(name)
        return None if room is not None and room.version else await self._read(name)

    async def _read(self, name: str) -> RoomRecord | None:
        try:
            return await self._state.need_store("read_room").read_room(name)
        except StoreUnavailable:
            return None

    def _room(self, name: str, seen: RoomRecord | None) -> Room:
        """The hosted room, with a reading merged in."""
        room = self._state.rooms.host(name)
        if seen is not None:
            self._reader.merge(room, seen)
        return room

    def _attach(
        self, session: Session, room: Room, wire: WireConnection, record: PlayerRecord, *, sfu: str | None
    ) -> None:
        router = self._state.config.router
        record = msgspec.structs.replace(record, sfu=sfu or "", router=router, epoch=session.claims.epoch, lost=False)
        session.wire, session.detached = wire, None
        self._state.rooms.attach(room, session)
        room.attach(session, record)
        self._writer.player(room.name, session.player)
        self._updates.soon(room)

    def _welcome(self, session: Session, wire: WireConnection, *, resumed: bool, sfu: str | None) -> None:
        state, claims = self._state, session.claims
        room = state.rooms.host(session.room)
        token = issue(claims, secret=state.config.secret, now_at=state.wall(), ttl_s=RESUME_TOKEN_TTL_S)
        assignment: AssignedSfu | None = self._placing.assigned(sfu, claims) if sfu else None
        welcome = Welcome(
            player=claims.player,
            resume_token=token,
            room=claims.room,
            identity=claims.identity,
            name=claims.name,
            can_publish=claims.publish,
            can_subscribe=claims.subscribe,
            resume_window_s=state.config.resume_window_s,
            resumed=resumed,
            assignment=assignment,
            snapshot=room.snapshot(),
            cordoned=tuple(cordoned_message(sfu_state) for sfu_state in state.directory.cordoned(room.sfus)),
            router=state.config.router,
        )
        wire.put(ws_frame(welcome))

    def _not_resumable(self, wire: WireConnection) -> None:
        wire.end(CloseCode.NOT_RESUMABLE, "the session is gone; join again")


def no_sfu(request: str = "") -> Failed:
    """The answer when no SFU is alive and placeable."""
    return Failed(
        code=Refusal.NO_SFU,
        message="no SFU is alive and takes new players",
        request=request,
        retry_after_s=RETRY_AFTER_S,
    )
