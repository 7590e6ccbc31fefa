"""The packets of a looped clip: what is due when, with sequence numbers, timestamps and picture ids that never jump."""

from __future__ import annotations

from itertools import accumulate

from client_sim.core.clip import AUDIO_MS, Clip
from player.core import frames
from player.core.track import AUDIO_CLOCK, AUDIO_PT, VIDEO_CLOCK, VIDEO_PT, Numbers, OutgoingTrack


class LoopedTrack(OutgoingTrack):
    """One publication's packets. `unit(n)` are the packets of unit n since the start, n may be any number in order."""

    per_unit_ticks: int
    unit_s: float

    def __init__(
        self, *, mid: str, numbers: Numbers, publication: str = "", source: str = "", start: float = 0.0
    ) -> None:
        """`start` is when unit 0 is due [monotonic seconds]."""
        super().__init__(publication=publication, mid=mid, numbers=numbers, source=source)
        self.start = start

    def due_at(self, unit: int) -> float:
        """When a unit is due [monotonic seconds]."""
        return self.start + unit * self.unit_s

    def timestamp(self, unit: int) -> int:
        """RTP timestamp of a unit."""
        return (self.numbers.timestamp + unit * self.per_unit_ticks) & 0xFFFFFFFF

    def timestamp_at(self, at: float) -> int:
        return (self.numbers.timestamp + int((at - self.start) * self.clock)) & 0xFFFFFFFF

    def is_key(self, unit: int) -> bool:
        """A new copy may begin with this unit."""
        raise NotImplementedError

    def unit(self, unit: int) -> list[bytes]:
        """The packets of a unit; remembers them for `repeat`."""
        raise NotImplementedError


class LoopedSound(LoopedTrack):
    """Opus, a packet each 20 ms."""

    kind = "audio"
    payload_type = AUDIO_PT
    clock = AUDIO_CLOCK
    per_unit_ticks = AUDIO_CLOCK * AUDIO_MS // 1000
    unit_s = AUDIO_MS / 1000.0

    def __init__(
        self,
        clip: Clip,
        *,
        mid: str,
        numbers: Numbers,
        publication: str = "",
        source: str = "",
        start: float = 0.0,
    ) -> None:
        super().__init__(mid=mid, numbers=numbers, publication=publication, source=source, start=start)
        self._packets = clip.audio

    def is_key(self, unit: int) -> bool:
        return True

    def unit(self, unit: int) -> list[bytes]:
        sequence = (self.numbers.sequence + unit) & 0xFFFF
        payload = self._packets[unit % len(self._packets)]
        # The marker begins a talk spurt (RFC 3551 section 4.1); ours is the first packet only.
        return [self._packet(sequence, self.timestamp(unit), marker=unit == 0, payload=payload)]


class LoopedPicture(LoopedTrack):
    """VP8, a frame each 1/fps s."""

    kind = "video"
    payload_type = VIDEO_PT
    clock = VIDEO_CLOCK

    def __init__(
        self,
        clip: Clip,
        *,
        mid: str,
        numbers: Numbers,
        publication: str = "",
        source: str = "",
        start: float = 0.0,
    ) -> None:
        super().__init__(mid=mid, numbers=numbers, publication=publication, source=source, start=start)
        self.per_unit_ticks = VIDEO_CLOCK // clip.fps
        self.unit_s = 1.0 / clip.fps
        self._frames = [frames.chunks(frame) for frame in clip.video]
        self._keys = frozenset(clip.keys)
        self._before = [0, *accumulate(len(parts) for parts in self._frames)]

    def is_key(self, unit: int) -> bool:
        return unit % len(self._frames) in self._keys

    def unit(self, unit: int) -> list[bytes]:
        lap, index = divmod(unit, len(self._frames))
        parts = self._frames[index]
        sequence = self.numbers.sequence + lap * self._before[-1] + self._before[index]
        timestamp, picture = self.timestamp(unit), self.numbers.picture + unit
        last = len(parts) - 1
        return [
            self._packet(
                (sequence + position) & 0xFFFF,
                timestamp,
                marker=position == last,
                payload=frames.descriptor(picture, first=position == 0) + part,
            )
            for position, part in enumerate(parts)
        ]
