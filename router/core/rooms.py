"""The rooms this router hosts: those with a session here."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from itertools import islice

from router.core.room import Room
from router.core.sessions import Session
from shared.records import MissingMedia

MEDIA_WORDS = ("send", "receive")
MAX_NAMED = 8
"""So many players without media are named in a router's record; the others are counted."""
MAX_ENDED = 20_000
"""Ended sessions remembered, so that they can't be resumed here (docs/protocol.md, section 3)."""


class HostedRooms:
    """All rooms and sessions of this router, and which sessions wait to be resumed."""

    def __init__(self, *, resume_window_s: float) -> None:
        self._rooms: dict[str, Room] = {}
        self._resume_window_s = resume_window_s
        self._detached: OrderedDict[tuple[str, str], Session] = OrderedDict()
        self._ended: OrderedDict[str, None] = OrderedDict()
        self._without_media: OrderedDict[tuple[str, str], Session] = OrderedDict()
        self.sessions = 0
        """Sessions here, those that wait to be resumed included."""
        self._keep_until = 0.0

    def get(self, name: str) -> Room | None:
        """The room, if it is hosted here."""
        return self._rooms.get(name)

    def host(self, name: str) -> Room:
        """The room, hosted from now on: attach a session in the same step."""
        room = self._rooms.get(name)
        if room is None:
            room = self._rooms[name] = Room(name)
            room.keep_until = self._keep_until
        return room

    def attach(self, room: Room, session: Session) -> None:
        """Count a session that `room.attach` is about to take."""
        self._rooms[room.name] = room
        self._detached.pop((room.name, session.player), None)
        self._without_media.pop((room.name, session.player), None)
        if session.player not in room.sessions:
            self.sessions += 1

    def lose(self, session: Session, *, now: float) -> None:
        """Its websocket broke: the resume window begins."""
        session.wire, session.detached = None, now
        self.note_media(session, ())  # it says so again when it is back
        self._detached[(session.room, session.player)] = session
        self._detached.move_to_end((session.room, session.player))

    def note_media(self, session: Session, missing: Iterable[str]) -> None:
        """The player says what of its media does not get through; words that we don't know are left out."""
        said = set(islice(missing, 2 * len(MEDIA_WORDS)))
        session.missing = tuple(word for word in MEDIA_WORDS if word in said)
        key = (session.room, session.player)
        if session.missing:
            self._without_media[key] = session
        else:
            self._without_media.pop(key, None)

    @property
    def without_media(self) -> int:
        """Players that are connected here and have said that their media does not get through."""
        return len(self._without_media)

    def who_without_media(self) -> tuple[MissingMedia, ...]:
        """The first of them to say so."""
        return tuple(
            MissingMedia(who=session.claims.name or session.claims.identity, room=session.room, missing=session.missing)
            for session in islice(self._without_media.values(), MAX_NAMED)
        )

    def end(self, session: Session) -> bool:
        """The session is over; false when it had ended before."""
        if not self._forget(session):
            return False
        room = self._rooms[session.room]
        room.detach_all(session.player)
        self._ended[session.player] = None
        while len(self._ended) > MAX_ENDED:
            self._ended.popitem(last=False)
        self._release_if_empty(room)
        return True

    def hand_over(self, session: Session) -> bool:
        """Another router has the session now; the player stays in the room."""
        if not self._forget(session):
            return False
        room = self._rooms[session.room]
        del room.sessions[session.player]
        self._release_if_empty(room)
        return True

    def expired(self, *, now: float) -> list[Session]:
        """Sessions whose resume window is over; `end` them."""
        return list(self.detached_for(self._resume_window_s, now=now))

    def detached_for(self, seconds: float, *, now: float) -> Iterator[Session]:
        """Sessions without a websocket for that long."""
        for session in self._detached.values():
            if session.detached is None or now - session.detached < seconds:
                return
            yield session

    def has_ended(self, player: str) -> bool:
        """That session ended here and can't be resumed."""
        return player in self._ended

    def keep_absent(self, *, until: float) -> None:
        """Redis may have lost records: before `until`, no player counts as gone for not being listed there."""
        self._keep_until = until
        for room in self._rooms.values():
            room.keep_until = until

    def touching(self, sfu: str) -> list[Room]:
        """Rooms that touch `sfu`."""
        return [room for room in self._rooms.values() if sfu in room.sfus]

    def __iter__(self) -> Iterator[Room]:
        return iter(self._rooms.values())

    def __len__(self) -> int:
        return len(self._rooms)

    def _forget(self, session: Session) -> bool:
        room = self._rooms.get(session.room)
        if room is None or room.sessions.get(session.player) is not session:
            return False
        self._detached.pop((session.room, session.player), None)
        self._without_media.pop((session.room, session.player), None)
        self.sessions -= 1
        return True

    def _release_if_empty(self, room: Room) -> None:
        if not room.sessions:
            self._rooms.pop(room.name, None)
