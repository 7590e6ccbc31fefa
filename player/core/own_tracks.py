"""What a player publishes, and what of it the room knows."""

from __future__ import annotations

from collections.abc import Sequence

from player.core.track import OutgoingTrack
from shared.records import PublicationRecord


class OwnTracks:
    """Our tracks in the order they came. One that is to end is sent until no move is under way: see `take_ended`."""

    def __init__(self, tracks: Sequence[OutgoingTrack]) -> None:
        self.all: tuple[OutgoingTrack, ...] = tuple(tracks)
        self._announced: set[str] = set()
        self._ending: list[OutgoingTrack] = []

    @property
    def publications(self) -> tuple[str, ...]:
        """Their ids."""
        return tuple(track.publication for track in self.all)

    @property
    def living(self) -> dict[str, OutgoingTrack]:
        """Those that are not to end, by id."""
        return {track.publication: track for track in self.all if track not in self._ending}

    def add(self, track: OutgoingTrack) -> None:
        """One track more."""
        self.all = (*self.all, track)

    def announced(self, publication: str) -> None:
        """The room has been told of it."""
        self._announced.add(publication)

    def new_session(self) -> None:
        """The room knows of nothing."""
        self._announced.clear()

    def end(self, track: OutgoingTrack) -> bool:
        """It is to end; False when it does already."""
        if track.publication not in self.living:
            return False
        self._ending.append(track)
        self._announced.discard(track.publication)
        return True

    def take_ended(self) -> list[OutgoingTrack]:
        """Those that end now. Call it when no move is under way: a target waits for all that flows at home."""
        ended, self._ending = self._ending, []
        self.all = tuple(track for track in self.all if track not in ended)
        return ended

    def records(self, *, player: str, sfu: str, generation: int) -> tuple[PublicationRecord, ...]:
        """What the room knows of us, to tell it to a router that may not."""
        return tuple(
            PublicationRecord(
                publication=track.publication,
                player=player,
                kind=track.kind,
                source=track.source,
                sfu=sfu,
                generation=generation,
            )
            for track in self.living.values()
            if track.publication in self._announced
        )
