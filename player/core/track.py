"""One publication as we send it: its numbers, its packets, and those sent lately, in case one is lost.

The same bytes go out on every copy of a publication during a move, so packets belong to a track and not to a link.
"""

from __future__ import annotations

import random
import string
import struct
from dataclasses import dataclass

from player.core import frames

AUDIO_PT = 111
VIDEO_PT = 96
RTX_PT = 97
AUDIO_CLOCK = 48_000
VIDEO_CLOCK = 90_000
MID_EXTENSION = 4
"""Id of the MID header extension in what we offer; Chromium uses the same."""
MIDS = string.digits + string.ascii_lowercase
"""Names of m-lines: one letter each, so that every packet's header has the same length."""
HEADER_BYTES = 20
"""Length of the RTP header of our packets, the MID extension included."""
HISTORY = 512
"""Packets kept for retransmission, a power of two: several seconds of a small picture."""
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


class OutgoingTrack:
    """The base of all tracks. A kind of track sets the four class attributes and makes packets with `_packet`."""

    kind: str
    """`audio` or `video`."""
    payload_type: int
    clock: int
    """RTP clock rate [Hz]."""

    def __init__(self, *, publication: str, mid: str, numbers: Numbers, source: str = "") -> None:
        """`publication` is the id that the room knows; `source` is the app's word for where it comes from."""
        self.publication = publication
        self.source = source
        self.mid = mid
        self.numbers = numbers
        self._extension = mid_extension(mid)
        self._history: list[bytes | None] = [None] * HISTORY

    def timestamp_at(self, at: float) -> int:
        """RTP timestamp of a moment [monotonic seconds], for sender reports."""
        raise NotImplementedError

    def want_key(self) -> None:
        """A new copy begins, or a receiver can't decode: a key frame is needed. Nothing to do for most tracks."""

    def filler(self, at: float) -> list[bytes]:
        """Packets to send at `at` although the source has nothing: usually none."""
        return []

    def repeat(self, sequence: int) -> bytes | None:
        """The packet with that sequence number, if it was sent lately."""
        packet = self._history[sequence % HISTORY]
        return packet if packet is not None and packet[2:4] == sequence.to_bytes(2, "big") else None

    def _packet(self, sequence: int, timestamp: int, *, marker: bool, payload: bytes) -> bytes:
        second = self.payload_type | (0x80 if marker else 0)
        packet = _HEADER.pack(0x90, second, sequence, timestamp, self.numbers.ssrc) + self._extension + payload
        self._history[sequence % HISTORY] = packet
        return packet


def rtx_packet(packet: bytes, *, ssrc: int, sequence: int) -> bytes:
    """A packet of ours as a retransmission (RFC 4588 section 4): its sequence number goes in front of its payload."""
    first, second, _, timestamp, _ = _HEADER.unpack_from(packet)
    header = _HEADER.pack(first, (second & 0x80) | RTX_PT, sequence, timestamp, ssrc)
    return header + packet[12:HEADER_BYTES] + packet[2:4] + packet[HEADER_BYTES:]


def original_packet(repair: bytes, *, payload_start: int, payload_end: int, ssrc: int, payload_type: int) -> bytes:
    """The packet that a retransmission repeats (RFC 4588 section 4), without header extensions and padding."""
    _, second, _, timestamp, _ = _HEADER.unpack_from(repair)
    sequence = int.from_bytes(repair[payload_start : payload_start + 2], "big")
    header = _HEADER.pack(0x80, (second & 0x80) | payload_type, sequence, timestamp, ssrc)
    return header + repair[payload_start + 2 : payload_end]
