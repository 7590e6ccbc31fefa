"""RTP packets: read the header, walk its extensions, build one (RFC 3550 section 5, RFC 8285)."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from shared.errors import BadPacket

HEADER_LENGTH = 12
ONE_BYTE_PROFILE = 0xBEDE
TWO_BYTE_PROFILE = 0x1000
"""Upper 12 bits; the lower 4 are application bits (RFC 8285 section 4.3)."""

_FIXED = struct.Struct("!BBHII")
_EXTENSION = struct.Struct("!HH")

MID_URI = "urn:ietf:params:rtp-hdrext:sdes:mid"
RID_URI = "urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id"
REPAIRED_RID_URI = "urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id"
AUDIO_LEVEL_URI = "urn:ietf:params:rtp-hdrext:ssrc-audio-level"
ABS_SEND_TIME_URI = "http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time"
TRANSPORT_CC_URI = "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"
ORIENTATION_URI = "urn:3gpp:video-orientation"


class RtpHeader:
    """Where things are in one packet; offsets are into the packet it was parsed from."""

    __slots__ = (
        "extension_end",
        "extension_profile",
        "extension_start",
        "marker",
        "payload_end",
        "payload_start",
        "payload_type",
        "sequence",
        "ssrc",
        "timestamp",
    )

    marker: bool
    payload_type: int
    sequence: int
    timestamp: int
    ssrc: int
    extension_profile: int
    """0 without a header extension."""
    extension_start: int
    extension_end: int
    payload_start: int
    payload_end: int
    """Before the padding; equal to `payload_start` for a packet that is only padding."""


def parse(packet: bytes) -> RtpHeader:
    """Read a decrypted packet's header. Raises `BadPacket` when a length points outside the packet."""
    size = len(packet)
    if size < HEADER_LENGTH:
        raise BadPacket(protocol="rtp", detail=f"{size} bytes is too short")
    first, second, sequence, timestamp, ssrc = _FIXED.unpack_from(packet)
    if first >> 6 != 2:
        raise BadPacket(protocol="rtp", detail=f"version {first >> 6}")
    header = RtpHeader()
    header.marker = second > 127
    header.payload_type = second & 0x7F
    header.sequence = sequence
    header.timestamp = timestamp
    header.ssrc = ssrc
    position = HEADER_LENGTH + 4 * (first & 0x0F)
    if first & 0x10:
        if position + 4 > size:
            raise BadPacket(protocol="rtp", detail="truncated header extension")
        header.extension_profile, words = _EXTENSION.unpack_from(packet, position)
        header.extension_start = position + 4
        header.extension_end = position = position + 4 + 4 * words
    else:
        header.extension_profile = header.extension_start = header.extension_end = 0
    header.payload_start = position
    header.payload_end = size
    if first & 0x20:
        padding = packet[-1]
        if padding == 0:
            raise BadPacket(protocol="rtp", detail="padding of length 0")
        header.payload_end = size - padding
    if header.payload_end < position:
        raise BadPacket(protocol="rtp", detail="header or padding longer than the packet")
    return header


def walk_extensions(packet: bytes, header: RtpHeader) -> Iterator[tuple[int, int, int]]:
    """`(id, start, end)` of each header extension element, of either form.

    A truncated element ends the walk: what came before it stands (a peer's bug there must not cost the payload).
    """
    position, end = header.extension_start, header.extension_end
    if header.extension_profile == ONE_BYTE_PROFILE:
        while position < end:
            byte = packet[position]
            position += 1
            if byte == 0:
                continue
            identifier, length = byte >> 4, (byte & 0x0F) + 1
            # Id 15 ends processing, id 0 with a length is malformed (RFC 8285 section 4.2).
            if identifier in (0, 15) or position + length > end:
                return
            yield identifier, position, position + length
            position += length
    elif header.extension_profile & 0xFFF0 == TWO_BYTE_PROFILE:
        while position + 1 < end:
            identifier = packet[position]
            if identifier == 0:
                position += 1
                continue
            start = position + 2
            position = start + packet[position + 1]
            if position > end:
                return
            yield identifier, start, position


def extensions(packet: bytes, header: RtpHeader) -> dict[int, bytes]:
    """All header extension elements by id; the last of a repeated id wins."""
    return {identifier: packet[start:end] for identifier, start, end in walk_extensions(packet, header)}


def encode_extensions(elements: Sequence[tuple[int, bytes]]) -> bytes:
    """The whole extension block with its 4-byte head, in one-byte form where all fit, else in two-byte form.

    Empty for no elements. Ids are 1..255 and values at most 255 bytes, which the caller guarantees.
    """
    if not elements:
        return b""
    one_byte = all(identifier <= 14 and 1 <= len(value) <= 16 for identifier, value in elements)
    if one_byte:
        body = b"".join(bytes(((identifier << 4) | (len(value) - 1),)) + value for identifier, value in elements)
    else:
        body = b"".join(bytes((identifier, len(value))) + value for identifier, value in elements)
    body += bytes(-len(body) % 4)
    return _EXTENSION.pack(ONE_BYTE_PROFILE if one_byte else TWO_BYTE_PROFILE, len(body) // 4) + body


def build(
    *,
    payload_type: int,
    sequence: int,
    timestamp: int,
    ssrc: int,
    payload: bytes,
    marker: bool = False,
    extension_elements: Sequence[tuple[int, bytes]] = (),
    padding: int = 0,
) -> bytes:
    """A packet. `padding` is the number of padding bytes, 0..255, its count byte included."""
    block = encode_extensions(extension_elements)
    first = 0x80 | (0x10 if block else 0) | (0x20 if padding else 0)
    second = payload_type | (0x80 if marker else 0)
    tail = bytes(padding - 1) + bytes((padding,)) if padding else b""
    return _FIXED.pack(first, second, sequence, timestamp, ssrc) + block + payload + tail


def sequence_delta(newer: int, older: int) -> int:
    """How far `newer` is ahead of `older`, -32768..32767, across the wrap of 16 bits."""
    return ((newer - older + 0x8000) & 0xFFFF) - 0x8000


def timestamp_delta(newer: int, older: int) -> int:
    """How far `newer` is ahead of `older` in ticks, across the wrap of 32 bits."""
    return ((newer - older + 0x80000000) & 0xFFFFFFFF) - 0x80000000


def abs_send_time(now: float) -> bytes:
    """The 24-bit abs-send-time value of a moment [s]: 6.18 fixed point, wraps each 64 s."""
    return (int(now * 262144.0) & 0xFFFFFF).to_bytes(3, "big")
