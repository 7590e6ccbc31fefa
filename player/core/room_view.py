"""The room as a player sees it: who is there, and what it takes of whom."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

from player.core import events as e
from player.core.follower import Effect, Follower
from player.core.roster import Roster
from shared.messages.player import RoomSnapshot, RoomUpdate
from shared.records import PublicationRecord


class RoomView:
    """Feed it what the router tells; `tell` hears of all that is new, and the effects are the follower's."""

    def __init__(
        self,
        *,
        rng: random.Random,
        own: frozenset[str],
        takes: Callable[[PublicationRecord], bool],
        tell: Callable[[e.PlayerEvent], None],
    ) -> None:
        """`own`: ids of our own publications; `takes`: whether to subscribe to one of another player."""
        self.roster = Roster()
        self.follower = Follower(rng=rng, own=own)
        self._takes = takes
        self._tell = tell
        self._taken: dict[str, PublicationRecord] = {}
        self._heard: set[str] = set()

    def snapshot(self, room: RoomSnapshot) -> list[Effect]:
        """The whole room."""
        self._tell_all(self.roster.snapshot(room.players))
        effects = self.follower.snapshot(self._wanted(room.publications))
        self._note_taken()
        return effects

    def update(self, room: RoomUpdate) -> list[Effect]:
        """What has changed."""
        self._tell_all([*self.roster.left(room.left), *self.roster.changed(room.players)])
        effects = self.follower.changed(self._wanted(room.publications))
        self._note_taken()
        return [*effects, *self.follower.ended(room.ended)]

    def dropped(self, publication: str) -> None:
        """The follower takes it no longer."""
        self._heard.discard(publication)
        record = self._taken.pop(publication, None)
        if record is not None:
            self._tell(e.TrackEnded(record=record))

    def hears(self, publication: str, sfu: str) -> PublicationRecord | None:
        """A unit of a publication came from an SFU: its record, None when we take it no longer."""
        record = self.follower.publications.get(publication)
        if record is not None and publication not in self._heard:
            self._heard.add(publication)
            self._tell(e.TrackHeard(record=record, sfu=sfu))
        return record

    def _wanted(self, publications: Iterable[PublicationRecord]) -> list[PublicationRecord]:
        return [record for record in publications if self._takes(record)]

    def _note_taken(self) -> None:
        for publication, record in self.follower.publications.items():
            if publication not in self._taken:
                self._tell(e.TrackPublished(record=record))
            self._taken[publication] = record

    def _tell_all(self, events: Iterable[e.PlayerEvent]) -> None:
        for event in events:
            self._tell(event)
