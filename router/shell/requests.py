"""What a player asks of its router once its session has begun: one handler a message."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from router.core import bounds
from router.core.plan import Ask
from router.core.room import Room
from router.core.selector.decision import PlacementDecision
from router.core.sessions import Session
from router.shell.placing import Placing
from router.shell.session_starter import no_sfu
from router.shell.sessions import Sessions
from router.shell.state import RouterState
from router.shell.store_writer import StoreWriter
from router.shell.updates import Updates
from router.shell.wire import WireConnection, ws_frame
from shared.logs import fields
from shared.messages.codes import Refusal
from shared.messages.player import (
    Decided,
    Failed,
    Leave,
    MediaState,
    Moved,
    Ping,
    Pong,
    Publish,
    RequestAccess,
    RequestSfu,
    SetPresence,
    SfuAccess,
    ToRouter,
    Unpublish,
)
from shared.records import PlayerRecord, StayReason

Handler = Callable[[Session, Room, WireConnection, Any], Awaitable[None]]
NORMAL_CLOSURE = 1000


class Requests:
    """Handles the messages of sessions."""

    def __init__(
        self, state: RouterState, *, sessions: Sessions, placing: Placing, writer: StoreWriter, updates: Updates
    ) -> None:
        self._state = state
        self._sessions = sessions
        self._placing = placing
        self._writer = writer
        self._updates = updates
        self._handlers: dict[type[Any], Handler] = {
            RequestSfu: self._request_sfu,
            RequestAccess: self._request_access,
            Publish: self._publish,
            Unpublish: self._unpublish,
            SetPresence: self._set_presence,
            Decided: self._decided,
            Moved: self._moved,
            MediaState: self._media_state,
            Leave: self._leave,
            Ping: self._ping,
        }

    async def handle(self, session: Session, wire: WireConnection, message: ToRouter) -> None:
        """Answer one message. One from a session that has ended meanwhile is ignored."""
        room = self._state.rooms.get(session.room)
        if room is not None and room.sessions.get(session.player) is session and session.wire is wire:
            await self._handlers[type(message)](session, room, wire, message)

    async def _request_sfu(self, session: Session, room: Room, wire: WireConnection, message: RequestSfu) -> None:
        request = bounds.word(message.request)

        def deliver(decision: PlacementDecision) -> None:
            if decision.chosen is None:
                wire.put(ws_frame(no_sfu(request)))
                return
            self._rehome(session, decision.chosen, still_carried=ask.still_carried)
            wire.put(ws_frame(self._placing.assigned(decision.chosen, session.claims, request=request)))

        # A player is believed about SFUs that its room touches, and about no others.
        concerned = message.leave in room.sfus
        ask = Ask(
            room=room.name,
            leave=bounds.word(message.leave, most=bounds.MAX_SFU_ID),
            leave_version=bounds.version_named(message.incarnation, message.revision) if concerned else (0, 0),
            exclude=bounds.excluded(message.exclude),
            reason=bounds.word(message.reason),
        )
        self._note_failure(session, ask)
        await self._placing.place(ask, session=session, deliver=deliver)

    def _note_failure(self, session: Session, ask: Ask) -> None:
        """The SFU that it was sent to last may be one that it could not connect to."""
        state = self._state
        if state.tries.asks_again(session, ask.exclude, now=state.mono()):
            state.metrics.ice_failures.inc()

    def _rehome(self, session: Session, sfu: str, *, still_carried: bool) -> None:
        room = self._state.rooms.get(session.room)
        if room is None or room.sessions.get(session.player) is not session:
            return
        room.move(session, sfu)
        if not still_carried:
            self._home(session, room, sfu)

    def _home(self, session: Session, room: Room, sfu: str) -> None:
        """The player lives on `sfu` now."""
        known = room.players[session.player]
        if known.sfu != sfu:
            session.home_at = self._state.wall()
        self._put(session, room, msgspec.structs.replace(known, sfu=sfu, stay=None))
        room.move(session, "")

    async def _request_access(self, session: Session, room: Room, wire: WireConnection, message: RequestAccess) -> None:
        request = bounds.word(message.request)
        state = self._state.directory.state(message.sfu)
        refused = (
            Refusal.NOT_ALLOWED
            if not session.claims.subscribe
            else Refusal.NOT_IN_ROOM
            if message.sfu not in room.carriers()
            else Refusal.UNKNOWN_SFU
            if state is None
            else None
        )
        if refused is not None or state is None:
            self._refuse(wire, bounds.Rejection(refused or Refusal.UNKNOWN_SFU), request)
            return
        token = self._placing.sfu_token(message.sfu, session.claims, publish=False)
        access = SfuAccess(
            sfu=message.sfu,
            address=state.address,
            token=token,
            request=request,
            ice_servers=self._placing.ice_servers(session.claims),
        )
        wire.put(ws_frame(access))

    async def _publish(self, session: Session, room: Room, wire: WireConnection, message: Publish) -> None:
        known_sfu = message.sfu in self._state.directory or message.sfu in room.sfus
        record = bounds.publication(message, session, room, known_sfu=known_sfu)
        if isinstance(record, bounds.Rejection):
            self._refuse(wire, record)
        elif room.put_publication(record):
            self._state.tries.works(session, record.sfu)
            self._writer.publication(room.name, session.player, record.publication)
            self._updates.soon(room)

    async def _unpublish(self, session: Session, room: Room, wire: WireConnection, message: Unpublish) -> None:
        known = room.publications.get(message.publication)
        if known is None or known.player != session.player:
            self._refuse(wire, bounds.Rejection(Refusal.NOT_IN_ROOM, "no such publication of yours"))
            return
        room.drop_publication(message.publication)
        self._writer.publication(room.name, session.player, message.publication)
        self._updates.soon(room)

    async def _set_presence(self, session: Session, room: Room, _: WireConnection, message: SetPresence) -> None:
        self._put(session, room, msgspec.structs.replace(room.players[session.player], presence=message.presence))

    async def _decided(self, session: Session, room: Room, wire: WireConnection, message: Decided) -> None:
        if message.sfu not in room.sfus:
            self._refuse(wire, bounds.Rejection(Refusal.NOT_IN_ROOM, "that SFU does not concern this room"))
            return
        reason = bounds.word(message.reason, most=bounds.MAX_REASON)
        stay = StayReason(sfu=message.sfu, move=message.move, reason=reason)
        self._put(session, room, msgspec.structs.replace(room.players[session.player], stay=stay))

    async def _moved(self, session: Session, room: Room, wire: WireConnection, message: Moved) -> None:
        if message.sfu not in self._state.directory:
            self._refuse(wire, bounds.Rejection(Refusal.UNKNOWN_SFU))
            return
        metrics = self._state.metrics
        for gap_ms, histogram in ((message.audio_gap_ms, metrics.audio_gap), (message.video_gap_ms, metrics.video_gap)):
            if gap_ms is not None and 0 <= gap_ms < float("inf"):
                histogram.observe(gap_ms)
        self._state.tries.works(session, message.sfu)
        self._home(session, room, message.sfu)

    async def _media_state(self, session: Session, room: Room, _: WireConnection, message: MediaState) -> None:
        before = session.missing
        self._state.rooms.note_media(session, message.missing)
        if session.missing and not before:
            self._state.metrics.media_missing.inc()
            missing, sfu = " ".join(session.missing), room.players[session.player].sfu or session.trying
            told = fields(player=session.player, room=room.name, missing=missing, sfu=sfu)
            self._state.trouble.warning("no-media", f"{told}")

    async def _leave(self, session: Session, _: Room, wire: WireConnection, __: Leave) -> None:
        self._sessions.leave(session)
        wire.end(NORMAL_CLOSURE, "goodbye")

    async def _ping(self, _: Session, __: Room, wire: WireConnection, message: Ping) -> None:
        wire.put(ws_frame(Pong(n=message.n)))

    def _put(self, session: Session, room: Room, record: PlayerRecord) -> None:
        if room.put_player(record):
            self._writer.player(room.name, session.player)
            self._updates.soon(room)

    def _refuse(self, wire: WireConnection, refused: bounds.Rejection, request: str = "") -> None:
        self._state.metrics.refused.labels("player", refused.code).inc()
        wire.put(ws_frame(Failed(code=refused.code, message=refused.message, request=request)))
