"""How sessions end: replaced by a newer one, taken over by another router, left, or not resumed in time."""

from __future__ import annotations

import msgspec

from router.core.room import Merged, Room
from router.core.sessions import PlayerWire, Session
from router.shell.state import RouterState
from router.shell.store_writer import StoreWriter
from router.shell.updates import Updates
from shared.messages.codes import CloseCode

LOST_AFTER_S = 5.0
"""A session without its websocket for this long is told to its room as lost: most are resumed within a second."""


class Sessions:
    """Ends sessions, and merges what Redis says of them."""

    def __init__(self, state: RouterState, writer: StoreWriter, updates: Updates) -> None:
        self._state = state
        self._writer = writer
        self._updates = updates

    def wire_lost(self, session: Session, wire: PlayerWire) -> None:
        """Its websocket is gone. The session waits to be resumed, unless it has another websocket or has ended."""
        room = self._state.rooms.get(session.room)
        if session.wire is wire and room is not None and room.sessions.get(session.player) is session:
            self._state.rooms.lose(session, now=self._state.mono())

    def mark(self, session: Session, wire: PlayerWire | None, *, lost: bool) -> None:
        """Nothing is heard of the player over this websocket (None: it has none), or something again. A session that is
        resumed is not marked."""
        room = self._state.rooms.get(session.room)
        if session.wire is not wire or room is None or session.player not in room.players:
            return
        if room.put_player(msgspec.structs.replace(room.players[session.player], lost=lost)):
            self._writer.player(room.name, session.player)
            self._updates.soon(room)

    def leave(self, session: Session) -> None:
        """The player has left."""
        self._end(session, tell_store=True)

    def replaced(self, session: Session) -> None:
        """A newer session of its identity is alive; Redis knows already."""
        wire = session.wire
        self._end(session, tell_store=False)
        if wire is not None:
            wire.end(CloseCode.REPLACED, "a newer session of this identity took over")

    def expire(self) -> None:
        """End every session that was not resumed in time; those that have not come back at once are lost."""
        for session in self._state.rooms.detached_for(LOST_AFTER_S, now=self._state.mono()):
            self.mark(session, None, lost=True)
        for session in self._state.rooms.expired(now=self._state.mono()):
            self._end(session, tell_store=True)

    def merged(self, room: Room, merged: Merged) -> None:
        """Act on what a reading of Redis says of the sessions here."""
        for session in merged.replaced:
            self.replaced(session)
        for session in merged.moved:
            wire = session.wire
            self._state.rooms.hand_over(session)
            if wire is not None:
                wire.end(CloseCode.REPLACED, "resumed on another router")
        for player in merged.missing_players:
            self._writer.player(room.name, player)
        for publication in merged.missing_publications:
            if (record := room.publications.get(publication)) is not None:
                self._writer.publication(room.name, record.player, publication)
        self._updates.soon(room)

    def _end(self, session: Session, *, tell_store: bool) -> None:
        room = self._state.rooms.get(session.room)
        if room is None or not self._state.rooms.end(session):
            return
        if tell_store:
            self._writer.leave(room.name, session.player)
        self._updates.soon(room)
