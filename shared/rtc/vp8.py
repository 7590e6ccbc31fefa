"""The VP8 payload descriptor: read it, and rewrite its picture id and TL0PICIDX (RFC 7741 section 4.2)."""

from __future__ import annotations

from shared.errors import BadPacket


class Vp8Descriptor:
    """What the descriptor at the start of a payload says. Absent fields are -1; offsets are into the payload."""

    __slots__ = ("keyframe_start", "length", "picture_id", "picture_id_at", "picture_id_mask", "tid", "tl0", "tl0_at")

    keyframe_start: bool
    """The first packet of a key frame."""
    length: int
    """Bytes of the descriptor."""
    picture_id: int
    picture_id_at: int
    picture_id_mask: int
    """0x7FFF or 0x7F; 0 when there is none."""
    tl0: int
    """TL0PICIDX, 8 bits."""
    tl0_at: int
    tid: int
    """Temporal layer."""


def parse(payload: bytes) -> Vp8Descriptor:
    """Read the descriptor of an RTP payload. Raises `BadPacket` when it is truncated."""
    try:
        return _parse(payload)
    except IndexError:
        raise BadPacket(protocol="vp8", detail=f"descriptor longer than the {len(payload)} bytes of payload") from None


def _parse(payload: bytes) -> Vp8Descriptor:
    descriptor = Vp8Descriptor()
    descriptor.picture_id = descriptor.picture_id_at = descriptor.tl0 = descriptor.tl0_at = descriptor.tid = -1
    descriptor.picture_id_mask = 0
    first = payload[0]
    position = 1
    if first & 0x80:
        flags = payload[1]
        position = 2
        if flags & 0x80:
            descriptor.picture_id_at = position
            if payload[position] & 0x80:
                descriptor.picture_id = (payload[position] & 0x7F) << 8 | payload[position + 1]
                descriptor.picture_id_mask = 0x7FFF
                position += 2
            else:
                descriptor.picture_id = payload[position]
                descriptor.picture_id_mask = 0x7F
                position += 1
        if flags & 0x40:
            descriptor.tl0_at = position
            descriptor.tl0 = payload[position]
            position += 1
        if flags & 0x30:
            if flags & 0x20:
                descriptor.tid = payload[position] >> 6
            position += 1
    descriptor.length = position
    # S set, partition 0, and the P bit of the frame header clear: a key frame begins here.
    descriptor.keyframe_start = first & 0x17 == 0x10 and payload[position] & 1 == 0
    if position >= len(payload):
        raise IndexError
    return descriptor


def shifted(payload: bytes, descriptor: Vp8Descriptor, *, picture_id_shift: int, tl0_shift: int) -> bytes:
    """The payload with its picture id and TL0PICIDX moved on by the shifts, each within its own width."""
    out = bytearray(payload)
    if descriptor.picture_id_mask:
        picture_id = (descriptor.picture_id + picture_id_shift) & descriptor.picture_id_mask
        at = descriptor.picture_id_at
        if descriptor.picture_id_mask == 0x7FFF:
            out[at] = 0x80 | picture_id >> 8
            out[at + 1] = picture_id & 0xFF
        else:
            out[at] = picture_id
    if descriptor.tl0_at >= 0:
        out[descriptor.tl0_at] = (descriptor.tl0 + tl0_shift) & 0xFF
    return bytes(out)
