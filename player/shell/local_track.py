"""What an application holds of a track that it publishes."""

from __future__ import annotations

from player.core.tracks import PushedTrack, Vp8Track
from player.shell.participant import Participant


class LocalTrack:
    """Something that we publish. It goes on over moves; while nothing is sent it stays published."""

    def __init__(self, track: PushedTrack, participant: Participant) -> None:
        self._track = track
        self._participant = participant

    @property
    def publication(self) -> str:
        """Its id in the room."""
        return self._track.publication

    @property
    def key_wanted(self) -> bool:
        """The encoder should make its next frame a key frame. Always false for sound."""
        return isinstance(self._track, Vp8Track) and self._track.key_wanted

    @property
    def dropped(self) -> int:
        """Frames that were not sent because receivers lack the key frame they build on."""
        return self._track.dropped if isinstance(self._track, Vp8Track) else 0

    def send(self, unit: bytes | bytearray | memoryview, *, media_s: float | None = None) -> None:
        """Send an Opus packet or a VP8 frame, at the time that it is to be heard or seen: nothing is paced here.

        `media_s` is its time by your own clock [s]. Without it sound follows on sound, and a picture is of this moment.
        Call it in the event loop's thread.
        """
        self._participant.send(self._track, bytes(unit), media_s=media_s)

    def end(self) -> None:
        """Publish it no longer."""
        self._participant.unpublish(self._track)
