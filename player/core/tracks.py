"""Tracks whose units an application hands over as its encoder makes them: Opus packets, VP8 frames.

A track flows on while its source pauses, because a player moves to another SFU once what flowed on the old one flows
there: sound becomes a packet of silence now and then, as encoders with discontinuous transmission do; a picture is its
last key frame, where a new copy has to begin with one.
"""

from __future__ import annotations

from player.core import frames, opus
from player.core.track import AUDIO_CLOCK, AUDIO_PT, VIDEO_CLOCK, VIDEO_PT, Numbers, OutgoingTrack

SILENCE_EVERY_S = 0.4
"""How often a pause is filled: libopus sends that often while it sends nothing else."""
STILL_AFTER_S = 1.0
"""A picture without a new frame for this long is a still one."""
PAUSE_S = 0.1
"""Sound that comes later than this after the end of the last packet begins a talk spurt (RFC 3551 section 4.1)."""
BLACK = bytes.fromhex("1002009d012a100010000047088585888584880202000c0d6000feffab5080")
"""A black VP8 key frame of 16 x 16, shown until the source has made its first."""


class PushedTrack(OutgoingTrack):
    """What both kinds share: sequence numbers, and timestamps that never go back.

    A unit's time is `media_s` [s], on the source's own clock, or else the moment it is handed over.
    """

    def __init__(self, *, publication: str, mid: str, numbers: Numbers, at: float, source: str = "") -> None:
        """`at` is now [monotonic seconds]: timestamps count from here."""
        super().__init__(publication=publication, mid=mid, numbers=numbers, source=source)
        self._sequence = numbers.sequence
        self._began = at
        self._last_at = at
        """When the last unit was sent."""
        self._end = 0
        """Where the last unit ends [ticks since the beginning]."""
        self._least = 0
        """The earliest time the next unit may have [ticks since the beginning]."""
        self._origin: int | None = None
        """The beginning of the source's clock [ticks since ours]."""

    def packets(self, unit: bytes, *, at: float, media_s: float | None = None) -> list[bytes]:
        """The packets of a unit handed over at `at` [monotonic seconds]; none when it can't be sent."""
        raise NotImplementedError

    def timestamp_at(self, at: float) -> int:
        return (self.numbers.timestamp + self._ticks(at)) & 0xFFFFFFFF

    def _ticks(self, at: float) -> int:
        return int((at - self._began) * self.clock)

    def _time(self, at: float, media_s: float | None, *, follows: bool) -> int:
        """Ticks of a unit; `follows`: without a time of its own it is due at the end of the one before it."""
        if media_s is None:
            late = self._ticks(at) - self._end
            return self._end if follows and late <= PAUSE_S * self.clock else max(self._end, self._ticks(at))
        own = round(media_s * self.clock)
        if self._origin is None or self._origin + own < self._least:
            self._origin = max(self._end, self._ticks(at)) - own
        return self._origin + own

    def _next(self, time: int, *, marker: bool, payload: bytes) -> bytes:
        sequence, self._sequence = self._sequence, (self._sequence + 1) & 0xFFFF
        self._least = time + 1
        timestamp = (self.numbers.timestamp + time) & 0xFFFFFFFF
        return self._packet(sequence, timestamp, marker=marker, payload=payload)


class OpusTrack(PushedTrack):
    """Sound: Opus packets of any length, mono or stereo."""

    kind = "audio"
    payload_type = AUDIO_PT
    clock = AUDIO_CLOCK

    def __init__(self, *, publication: str, mid: str, numbers: Numbers, at: float, source: str = "") -> None:
        super().__init__(publication=publication, mid=mid, numbers=numbers, at=at, source=source)
        self._paused = True

    def packets(self, unit: bytes, *, at: float, media_s: float | None = None) -> list[bytes]:
        duration = opus.ticks(unit)
        if not duration:
            return []
        time = self._time(at, media_s, follows=not self._paused)
        marker = self._paused or time - self._end > PAUSE_S * self.clock
        self._paused, self._last_at, self._end = False, at, time + duration
        return [self._next(time, marker=marker, payload=unit)]

    def filler(self, at: float) -> list[bytes]:
        if at - self._last_at < SILENCE_EVERY_S:
            return []
        time = max(self._end, self._ticks(at))
        self._paused, self._last_at, self._end = True, at, time + opus.ticks(opus.SILENCE)
        return [self._next(time, marker=False, payload=opus.SILENCE)]


class Vp8Track(PushedTrack):
    """Pictures: VP8 frames. `key_wanted` asks the encoder for a key frame; without one nothing new can be decoded."""

    kind = "video"
    payload_type = VIDEO_PT
    clock = VIDEO_CLOCK

    def __init__(self, *, publication: str, mid: str, numbers: Numbers, at: float, source: str = "") -> None:
        super().__init__(publication=publication, mid=mid, numbers=numbers, at=at, source=source)
        self.key_wanted = True
        self.dropped = 0
        """Frames that were not sent because the key frame they build on was not sent."""
        self._picture = numbers.picture
        self._still = BLACK
        self._broken = True
        """Receivers have not got what the next frame builds on, unless it is a key frame."""
        self._beginning = True
        """A copy waits for its first key frame."""

    def want_key(self) -> None:
        self.key_wanted = self._beginning = True

    def packets(self, unit: bytes, *, at: float, media_s: float | None = None) -> list[bytes]:
        if not unit:
            return []
        key = frames.is_key(unit)
        if self._broken and not key:
            self.key_wanted = True
            self.dropped += 1
            return []
        if key:
            self._still, self.key_wanted, self._broken = unit, False, False
        return self._cut(unit, self._time(at, media_s, follows=False), at, key=key)

    def filler(self, at: float) -> list[bytes]:
        if not self._beginning or at - self._last_at < STILL_AFTER_S:
            return []
        self._broken = self.key_wanted = True
        return self._cut(self._still, max(self._end, self._ticks(at)), at, key=True)

    def _cut(self, frame: bytes, time: int, at: float, *, key: bool) -> list[bytes]:
        self._last_at, self._end = at, time + 1
        self._beginning = self._beginning and not key
        picture, self._picture = self._picture, self._picture + 1
        parts = frames.chunks(frame)
        last = len(parts) - 1
        return [
            self._next(time, marker=position == last, payload=frames.descriptor(picture, first=position == 0) + part)
            for position, part in enumerate(parts)
        ]
