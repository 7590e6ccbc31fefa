"""VP8 in RTP (RFC 7741): cut frames into payloads, and put them together again in decoding order."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from shared.rtc import vp8
from shared.rtc.rtp import sequence_delta, timestamp_delta

MAX_CHUNK = 1100
"""Bytes of a frame in one packet: with all headers and SRTP's tag still under 1200."""
PICTURE_IDS = 1 << 15
_FIRST = 0x90
"""X and S set, partition 0: the beginning of a frame."""
_REST = 0x80
_HAS_PICTURE_ID = 0x80
_DESCRIPTOR = struct.Struct("!BBH")
MAX_PENDING = 16
"""Frames kept while packets of them are missing; beyond that all are given up."""
JUMP_AFTER = 4
"""Frames that must be waiting before a key frame is taken although something before it is missing: some 0.2 s."""
MAX_PARTS = 512
"""Packets kept of one frame; a longer one is not assembled."""


def chunks(frame: bytes) -> tuple[bytes, ...]:
    """A frame cut into the parts that go into one packet each."""
    return tuple(frame[start : start + MAX_CHUNK] for start in range(0, len(frame), MAX_CHUNK))


def descriptor(picture: int, *, first: bool) -> bytes:
    """The four-byte payload descriptor with a 15-bit picture id (RFC 7741 section 4.2)."""
    return _DESCRIPTOR.pack(_FIRST if first else _REST, _HAS_PICTURE_ID, 0x8000 | (picture % PICTURE_IDS))


@dataclass(frozen=True, slots=True)
class PayloadPart:
    """What a payload descriptor says."""

    starts: bool
    """The frame begins here."""
    body: bytes


def read(payload: bytes) -> PayloadPart:
    """Read a payload. Raises `BadPacket` when its descriptor is cut off."""
    length = vp8.parse(payload).length
    return PayloadPart(payload[0] & 0x17 == 0x10, payload[length:])


def is_key(frame: bytes) -> bool:
    """True for a key frame: the inverse of the lowest bit of a frame (RFC 6386 section 9.1)."""
    return not frame[0] & 1


@dataclass(slots=True)
class _Pending:
    timestamp: int
    parts: dict[int, PayloadPart] = field(default_factory=dict)
    first: int | None = None
    """Sequence number of the first packet."""
    last: int | None = None
    """Sequence number of the packet with the marker."""

    def complete(self) -> bool:
        if self.first is None or self.last is None:
            return False
        return len(self.parts) == ((self.last - self.first) & 0xFFFF) + 1

    def data(self) -> bytes:
        if len(self.parts) == 1:
            return next(iter(self.parts.values())).body
        assert self.first is not None
        ordered = sorted(self.parts, key=lambda sequence: sequence_delta(sequence, self.first or 0))
        return b"".join(self.parts[sequence].body for sequence in ordered)


class Assembler:
    """Frames of one copy of a stream, each once, complete and decodable: from a key frame on, none left out before it.

    A frame follows its predecessor when its first packet comes right after the predecessor's last. `wants_key` is
    true while nothing can be decoded: at the start and after a frame was given up; the caller then asks for a key
    frame.
    """

    def __init__(self) -> None:
        self._pending: dict[int, _Pending] = {}
        self._next: int | None = None
        """Sequence number that the next frame must begin with; None: only a key frame will do."""
        self._done: int | None = None
        """Timestamp of the last frame given out."""

    @property
    def wants_key(self) -> bool:
        """Nothing can be decoded before a key frame."""
        return self._next is None

    def add(self, sequence: int, timestamp: int, marker: bool, payload: bytes) -> Iterator[tuple[int, bytes]]:
        """Take a packet; yields timestamp and content of the frames it completes. Raises `BadPacket`."""
        if self._done is not None and timestamp_delta(timestamp, self._done) <= 0:
            return iter(())
        part = read(payload)
        alone = part.starts and marker and not self._pending  # as most frames are
        if alone and (sequence == self._next or (self._next is None and is_key(part.body))):
            self._next, self._done = (sequence + 1) & 0xFFFF, timestamp
            return iter(((timestamp, part.body),))
        pending = self._pending.get(timestamp)
        if pending is None:
            pending = self._pending[timestamp] = _Pending(timestamp)
        if len(pending.parts) < MAX_PARTS:
            pending.parts[sequence] = part
        if part.starts:
            pending.first = sequence
        if marker:
            pending.last = sequence
        return self._release() if pending.complete() or len(self._pending) > MAX_PENDING else iter(())

    def _release(self) -> Iterator[tuple[int, bytes]]:
        ready: list[tuple[int, bytes]] = []
        while (frame := self._pop()) is not None:
            ready.append(frame)
        if len(self._pending) > MAX_PENDING:
            self._give_up()
        return iter(ready)

    def _pop(self) -> tuple[int, bytes] | None:
        for pending in sorted(self._pending.values(), key=lambda p: timestamp_delta(p.timestamp, self._done or 0)):
            if not pending.complete():
                continue
            data = pending.data()
            if pending.first != self._next and not (is_key(data) and self._may_jump()):
                continue
            assert pending.last is not None
            self._next, self._done = (pending.last + 1) & 0xFFFF, pending.timestamp
            self._drop_older(pending.timestamp)
            return pending.timestamp, data
        return None

    def _may_jump(self) -> bool:
        """A key frame makes what is missing before it unnecessary, once that had its time to come late."""
        return self._next is None or len(self._pending) >= JUMP_AFTER

    def _drop_older(self, timestamp: int) -> None:
        for older in [ts for ts in self._pending if timestamp_delta(ts, timestamp) <= 0]:
            del self._pending[older]

    def _give_up(self) -> None:
        """Too much is waiting for what is lost: forget it and wait for a key frame."""
        self._pending.clear()
        self._next = None
