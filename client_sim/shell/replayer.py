"""Sends a bot's looped tracks when they are due; runs on the pacer."""

from __future__ import annotations

from collections.abc import Sequence

from client_sim.core.replay import LoopedTrack
from player.shell.publisher import TrackPublisher

MAX_LAG_S = 1.0
"""After a longer stall of this process units are skipped rather than sent in one burst."""


class Replayer:
    """The tracks of one bot over time."""

    def __init__(self, tracks: Sequence[LoopedTrack], publisher: TrackPublisher) -> None:
        self.tracks = tuple(tracks)
        self._publisher = publisher
        self._next = [0 for _ in self.tracks]
        self._stopped = False

    def stop(self) -> None:
        """Send nothing more."""
        self._stopped = True

    def run(self, now: float) -> float | None:
        """Send all units that are due at `now` [monotonic seconds]; when the next one is, None after `stop`."""
        if self._stopped:
            return None
        for position, track in enumerate(self.tracks):
            unit = self._next[position]
            if now - track.due_at(unit) > MAX_LAG_S:
                unit = int((now - track.start) / track.unit_s)
            while track.due_at(unit) <= now:
                self._publisher.send(track, track.unit(unit), key=track.is_key(unit), now=now)
                unit += 1
            self._next[position] = unit
        return min(track.due_at(unit) for track, unit in zip(self.tracks, self._next, strict=True))
