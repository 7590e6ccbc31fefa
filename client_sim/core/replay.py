"""The packets of a looped clip: what is due when, with sequence numbers, timestamps and picture ids that never jump.

The same bytes go out on every copy of a publication during a move, so a track is made of packets, not of connections.
"""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass
from itertools import accumulate

from client_sim.core.clip import AUDIO_CLOCK, AUDIO_MS, VIDEO_CLOCK, Clip
from player.core import frames

AUDIO_PT = 111
VIDEO_PT = 96
RTX_PT = 97
MID_EXTENSION = 4
"""Id of the MID header extension in what bots offer; Chromium uses the same."""
HISTORY = 512
"""Packets kept for retransmission, a power of two: several seconds of a bot's video."""
_HEADER = struct.Struct("!BBHII")
_FIXED_EXTENSION = struct.Struct("!HHBBH")


def mid_extension(mid: str) -> bytes:
    """The header extension block that carries a one-letter MID in the one-byte form (RFC 8285, RFC 9143)."""
    return _FIXED_EXTENSION.pack(0xBEDE, 1, MID_EXTENSION << 4, ord(mid), 0)


@dataclass(frozen=True, slots=True)
class Numbers:
    """Where a track's numbers begin; random, as RFC 3550 section 5.1 asks."""

    ssrc: int
    rtx_ssrc: int
    sequence: int
    timestamp: int
    picture: int

    @classmethod
    def draw(cls, rng: random.Random) -> Numbers:
        """Numbers for a new track."""
        return cls(
            ssrc=rng.randrange(1, 1 << 32),
            rtx_ssrc=rng.randrange(1, 1 << 32),
            sequence=rng.randrange(1 << 15),
            timestamp=rng.randrange(1 << 32),
            picture=rng.randrange(frames.PICTURE_IDS),
        )


class Track:
    """One publication's packets. `unit(n)` are the packets of unit n since the start, n may be any number in order."""

    kind: str
    payload_type: int
    clock: int
    per_unit_ticks: int
    unit_s: float

    def __init__(self, *, mid: str, numbers: Numbers) -> None:
        self.mid = mid
        self.numbers = numbers
        self._extension = mid_extension(mid)
        self._history: list[bytes | None] = [None] * HISTORY

    def due_at(self, unit: int) -> float:
        """Seconds after the start at which a unit is due."""
        return unit * self.unit_s

    def timestamp(self, unit: int) -> int:
        """RTP timestamp of a unit."""
        return (self.numbers.timestamp + unit * self.per_unit_ticks) & 0xFFFFFFFF

    def timestamp_at(self, elapsed_s: float) -> int:
        """RTP timestamp of a moment, for sender reports."""
        return (self.numbers.timestamp + int(elapsed_s * self.clock)) & 0xFFFFFFFF

    def is_key(self, unit: int) -> bool:
        """A new copy may begin with this unit."""
        raise NotImplementedError

    def unit(self, unit: int) -> list[bytes]:
        """The packets of a unit; remembers them for `repeat`."""
        raise NotImplementedError

    def repeat(self, sequence: int) -> bytes | None:
        """The packet with that sequence number, if it was sent lately."""
        packet = self._history[sequence % HISTORY]
        return packet if packet is not None and packet[2:4] == sequence.to_bytes(2, "big") else None

    def _packet(self, sequence: int, timestamp: int, *, marker: bool, payload: bytes) -> bytes:
        second = self.payload_type | (0x80 if marker else 0)
        packet = _HEADER.pack(0x90, second, sequence, timestamp, self.numbers.ssrc) + self._extension + payload
        self._history[sequence % HISTORY] = packet
        return packet


class AudioTrack(Track):
    """Opus, a packet each 20 ms."""

    kind = "audio"
    payload_type = AUDIO_PT
    clock = AUDIO_CLOCK
    per_unit_ticks = AUDIO_CLOCK * AUDIO_MS // 1000
    unit_s = AUDIO_MS / 1000.0

    def __init__(self, clip: Clip, *, mid: str, numbers: Numbers) -> None:
        super().__init__(mid=mid, numbers=numbers)
        self._packets = clip.audio

    def is_key(self, unit: int) -> bool:
        return True

    def unit(self, unit: int) -> list[bytes]:
        sequence = (self.numbers.sequence + unit) & 0xFFFF
        payload = self._packets[unit % len(self._packets)]
        # The marker begins a talk spurt (RFC 3551 section 4.1); ours is the first packet only.
        return [self._packet(sequence, self.timestamp(unit), marker=unit == 0, payload=payload)]


class VideoTrack(Track):
    """VP8, a frame each 1/fps s."""

    kind = "video"
    payload_type = VIDEO_PT
    clock = VIDEO_CLOCK

    def __init__(self, clip: Clip, *, mid: str, numbers: Numbers) -> None:
        super().__init__(mid=mid, numbers=numbers)
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


def rtx_packet(packet: bytes, *, ssrc: int, sequence: int) -> bytes:
    """A packet of ours as a retransmission (RFC 4588 section 4): its sequence number goes in front of its payload."""
    first, second, _, timestamp, _ = _HEADER.unpack_from(packet)
    header = _HEADER.pack(first, (second & 0x80) | RTX_PT, sequence, timestamp, ssrc)
    return header + packet[12:20] + packet[2:4] + packet[20:]
