"""RTCP packets: read compounds part by part, build the kinds an SFU sends (RFC 3550 section 6, 3611, 4585, 5104, REMB).

aiortc's parser loses a whole compound to one padded feedback packet, and does not wrap sequence numbers in NACKs.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from shared.errors import BadPacket
from shared.rtc import transport_cc
from shared.rtc.transport_cc import TransportFeedback

SR, RR, SDES, BYE, RTPFB, PSFB, XR = 200, 201, 202, 203, 205, 206, 207
_FMT_NACK, _FMT_PLI, _FMT_FIR, _FMT_AFB = 1, 1, 4, 15
_XR_REFERENCE_TIME, _XR_SINCE_REFERENCE = 4, 5

MAX_BLOCKS = 31
"""Report blocks in one report: its count field has 5 bits."""

MAX_NACKED = 1000
"""Sequence numbers read from the NACKs of one compound; more than any cache holds is no honest request."""

_HEAD = struct.Struct("!BBH")
_WORD = struct.Struct("!I")
_TWO_WORDS = struct.Struct("!II")
_BLOCK = struct.Struct("!IIIIII")
_SENDER = struct.Struct("!QIII")
_NACK_ITEM = struct.Struct("!HH")
_XR_HEAD = struct.Struct("!BBH")
_REFERENCE = struct.Struct("!Q")
_SINCE = struct.Struct("!III")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportBlock:
    """How one of the receiver's streams arrives (RFC 3550 section 6.4.1)."""

    ssrc: int
    fraction_lost: int
    """Share of packets lost since the last report [1/256]."""
    lost: int
    """Packets lost since the stream began, signed 24 bits."""
    highest: int
    """Extended highest sequence number, 32 bits."""
    jitter: int
    """Interarrival jitter [RTP clock ticks]."""
    last_sr: int
    """Middle 32 bits of the last SR's NTP time; 0 when none came."""
    delay_since_sr: int
    """Time from that SR's arrival to this report [1/65536 s]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SenderReport:
    """A sender's clocks at one moment, and what it has sent (RFC 3550 section 6.4.1)."""

    ssrc: int
    ntp: int
    """64-bit NTP time."""
    rtp_timestamp: int
    """The same moment in RTP clock ticks."""
    packets: int
    octets: int
    """Payload since the stream began, without headers and padding [bytes, modulo 2^32]."""
    blocks: tuple[ReportBlock, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiverReport:
    """The blocks of a receiver that sends nothing itself (RFC 3550 section 6.4.2)."""

    ssrc: int
    """The receiver's own SSRC."""
    blocks: tuple[ReportBlock, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceDescription:
    """Only CNAMEs: `(ssrc, cname)` pairs."""

    cnames: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bye:
    """These streams have ended (RFC 3550 section 6.6)."""

    ssrcs: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Nack:
    """Asks for packets of one stream again (RFC 4585 section 6.2.1)."""

    sender: int
    """SSRC of the peer that asks."""
    media: int
    """SSRC of the stream."""
    sequences: tuple[int, ...]
    """Sequence numbers, 16 bits each; all NACKs of a compound give at most `MAX_NACKED`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureLoss:
    """Asks the sender of `media` for a key frame, since pictures were lost (PLI, RFC 4585 section 6.3.1)."""

    sender: int
    media: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FullIntraRequest:
    """Asks the senders of `media` for a key frame, whatever was lost (FIR, RFC 5104 section 4.3.1)."""

    sender: int
    media: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Remb:
    """Receiver estimated maximum bitrate (draft-alvestrand-rmcat-remb)."""

    sender: int
    bitrate_bps: int
    ssrcs: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceTime:
    """A receiver's own clock, so that a peer that sends no media can learn its round trip (RFC 3611 section 4.4)."""

    ssrc: int
    ntp: int
    """64-bit NTP time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """A well-framed packet of a kind we don't use: APP, other feedback, XR without a reference time."""

    packet_type: int
    count: int


RtcpPacket = (
    SenderReport
    | ReceiverReport
    | SourceDescription
    | Bye
    | Nack
    | PictureLoss
    | FullIntraRequest
    | Remb
    | TransportFeedback
    | ReferenceTime
    | Unread
)


def parse(compound: bytes) -> list[RtcpPacket]:
    """Read a decrypted compound. Raises `BadPacket` when its framing or a kind we use is broken."""
    packets: list[RtcpPacket] = []
    position, size, nacked = 0, len(compound), 0
    if size == 0:
        raise BadPacket(protocol="rtcp", detail="empty")
    while position < size:
        if position + 4 > size:
            raise BadPacket(protocol="rtcp", detail="truncated header")
        first, packet_type, words = _HEAD.unpack_from(compound, position)
        end = position + 4 + 4 * words
        if first >> 6 != 2 or end > size:
            raise BadPacket(protocol="rtcp", detail=f"version {first >> 6}, {words} words in {size - position} bytes")
        body = compound[position + 4 : end]
        if first & 0x20:
            body = _without_padding(body)
        try:
            packet = _read(packet_type, first & 0x1F, body)
        except (struct.error, IndexError):
            raise BadPacket(protocol="rtcp", detail=f"type {packet_type} is too short") from None
        if isinstance(packet, Nack):
            nacked += len(packet.sequences)
        if nacked > MAX_NACKED:
            raise BadPacket(protocol="rtcp", detail="NACKs of too many packets")
        packets.append(packet)
        position = end
    return packets


def _without_padding(body: bytes) -> bytes:
    if not body or not 0 < body[-1] <= len(body):
        raise BadPacket(protocol="rtcp", detail="padding longer than the packet")
    return body[: -body[-1]]


def _read(packet_type: int, count: int, body: bytes) -> RtcpPacket:
    if packet_type == SR:
        (ssrc,) = _WORD.unpack_from(body)
        ntp, rtp_timestamp, packets, octets = _SENDER.unpack_from(body, 4)
        blocks = _read_blocks(body, 24, count)
        return SenderReport(
            ssrc=ssrc, ntp=ntp, rtp_timestamp=rtp_timestamp, packets=packets, octets=octets, blocks=blocks
        )
    if packet_type == RR:
        (ssrc,) = _WORD.unpack_from(body)
        return ReceiverReport(ssrc=ssrc, blocks=_read_blocks(body, 4, count))
    if packet_type == SDES:
        return SourceDescription(cnames=_read_cnames(body, count))
    if packet_type == BYE:
        return Bye(ssrcs=struct.unpack_from(f"!{count}I", body))
    if packet_type == RTPFB and count == _FMT_NACK:
        return _read_nack(body)
    if packet_type == RTPFB and count == transport_cc.FORMAT:
        return transport_cc.read(body)
    if packet_type == PSFB:
        return _read_payload_feedback(count, body)
    if packet_type == XR:
        return _read_extended(count, body)
    return Unread(packet_type=packet_type, count=count)


def _read_blocks(body: bytes, position: int, count: int) -> tuple[ReportBlock, ...]:
    blocks = []
    for _ in range(count):
        ssrc, loss, highest, jitter, last_sr, delay = _BLOCK.unpack_from(body, position)
        position += 24
        lost = loss & 0xFFFFFF
        blocks.append(
            ReportBlock(
                ssrc=ssrc,
                fraction_lost=loss >> 24,
                lost=lost - 0x1000000 if lost & 0x800000 else lost,
                highest=highest,
                jitter=jitter,
                last_sr=last_sr,
                delay_since_sr=delay,
            )
        )
    return tuple(blocks)


def _read_cnames(body: bytes, count: int) -> tuple[tuple[int, str], ...]:
    cnames = []
    position = 0
    for _ in range(count):
        (ssrc,) = _WORD.unpack_from(body, position)
        position += 4
        while body[position] != 0:
            kind, length = body[position], body[position + 1]
            text = body[position + 2 : position + 2 + length]
            position += 2 + length
            if kind == 1:
                cnames.append((ssrc, text.decode("utf8", "replace")))
        position += 4 - position % 4
    return tuple(cnames)


def _read_nack(body: bytes) -> Nack:
    sender, media = _TWO_WORDS.unpack_from(body)
    sequences: list[int] = []
    for position in range(8, len(body) - 3, 4):
        base, mask = _NACK_ITEM.unpack_from(body, position)
        sequences.append(base)
        sequences.extend((base + bit + 1) & 0xFFFF for bit in range(16) if mask >> bit & 1)
    return Nack(sender=sender, media=media, sequences=tuple(sequences))


def _read_payload_feedback(fmt: int, body: bytes) -> RtcpPacket:
    sender, media = _TWO_WORDS.unpack_from(body)
    if fmt == _FMT_PLI:
        return PictureLoss(sender=sender, media=media)
    if fmt == _FMT_FIR:
        # The media SSRC of the header is unused; each entry names its own (RFC 5104 section 4.3.1.2).
        entries = [_WORD.unpack_from(body, position)[0] for position in range(8, len(body) - 7, 8)]
        return FullIntraRequest(sender=sender, media=tuple(entries))
    if fmt == _FMT_AFB and body[8:12] == b"REMB":
        count, packed = body[12], int.from_bytes(body[13:16], "big")
        ssrcs = struct.unpack_from(f"!{count}I", body, 16)
        return Remb(sender=sender, bitrate_bps=(packed & 0x3FFFF) << (packed >> 18), ssrcs=ssrcs)
    return Unread(packet_type=PSFB, count=fmt)


def _read_extended(count: int, body: bytes) -> RtcpPacket:
    """The first reference time among the blocks. Nothing else of an extended report is used here."""
    (ssrc,) = _WORD.unpack_from(body)
    position = 4
    while position < len(body):
        kind, _, words = _XR_HEAD.unpack_from(body, position)
        position += 4
        if position + 4 * words > len(body):
            raise BadPacket(protocol="rtcp", detail="extended report block longer than the packet")
        if kind == _XR_REFERENCE_TIME and words == 2:
            (ntp,) = _REFERENCE.unpack_from(body, position)
            return ReferenceTime(ssrc=ssrc, ntp=ntp)
        position += 4 * words
    return Unread(packet_type=XR, count=count)


def _frame(packet_type: int, count: int, body: bytes) -> bytes:
    return _HEAD.pack(0x80 | count, packet_type, len(body) // 4) + body


def _build_blocks(blocks: Iterable[ReportBlock]) -> bytes:
    return b"".join(
        _BLOCK.pack(
            block.ssrc,
            block.fraction_lost << 24 | block.lost & 0xFFFFFF,
            block.highest & 0xFFFFFFFF,
            block.jitter & 0xFFFFFFFF,
            block.last_sr,
            block.delay_since_sr & 0xFFFFFFFF,
        )
        for block in blocks
    )


def sender_report(report: SenderReport) -> bytes:
    """Bytes of a sender report with at most `MAX_BLOCKS` blocks."""
    sender = _SENDER.pack(report.ntp, report.rtp_timestamp, report.packets & 0xFFFFFFFF, report.octets & 0xFFFFFFFF)
    return _frame(SR, len(report.blocks), _WORD.pack(report.ssrc) + sender + _build_blocks(report.blocks))


def receiver_report(ssrc: int, blocks: Sequence[ReportBlock]) -> bytes:
    """Bytes of a receiver report with at most `MAX_BLOCKS` blocks."""
    return _frame(RR, len(blocks), _WORD.pack(ssrc) + _build_blocks(blocks))


def source_description(ssrc: int, cname: str) -> bytes:
    """One chunk with a CNAME, cut to the 255 bytes its length field can say."""
    text = cname.encode()[:255]
    chunk = _WORD.pack(ssrc) + bytes((1, len(text))) + text
    return _frame(SDES, 1, chunk + bytes(4 - len(chunk) % 4))


def bye(ssrcs: Sequence[int]) -> bytes:
    """A goodbye for at most 31 SSRCs."""
    return _frame(BYE, len(ssrcs), struct.pack(f"!{len(ssrcs)}I", *ssrcs))


def nack(*, sender: int, media: int, sequences: Iterable[int]) -> bytes:
    """Ask for packets again. `sequences` are 16-bit numbers in ascending order, across the wrap."""
    items: list[list[int]] = []
    for sequence in sequences:
        ahead = (sequence - items[-1][0]) & 0xFFFF if items else 0
        if items and 1 <= ahead <= 16:
            items[-1][1] |= 1 << (ahead - 1)
        else:
            items.append([sequence, 0])
    body = b"".join(_NACK_ITEM.pack(base, mask) for base, mask in items)
    return _frame(RTPFB, _FMT_NACK, _TWO_WORDS.pack(sender, media) + body)


def picture_loss(*, sender: int, media: int) -> bytes:
    """Ask for a key frame."""
    return _frame(PSFB, _FMT_PLI, _TWO_WORDS.pack(sender, media))


def full_intra_request(*, sender: int, media: int, command: int) -> bytes:
    """Ask for a key frame the old way; `command` grows by one (mod 256) with each new request."""
    return _frame(PSFB, _FMT_FIR, _TWO_WORDS.pack(sender, 0) + _TWO_WORDS.pack(media, (command & 0xFF) << 24))


def remb(*, sender: int, bitrate_bps: int, ssrcs: Sequence[int]) -> bytes:
    """Tell a sender what it may send in all; at most 255 SSRCs."""
    exponent = max(0, bitrate_bps.bit_length() - 18)
    packed = exponent << 18 | bitrate_bps >> exponent
    head = _TWO_WORDS.pack(sender, 0) + b"REMB" + bytes((len(ssrcs),)) + packed.to_bytes(3, "big")
    return _frame(PSFB, _FMT_AFB, head + struct.pack(f"!{len(ssrcs)}I", *ssrcs))


def reference_time(*, sender: int, ntp: int) -> bytes:
    """Tell one's own 64-bit NTP time, to be answered with `since_reference` (RFC 3611 section 4.4)."""
    return _frame(XR, 0, _WORD.pack(sender) + _XR_HEAD.pack(_XR_REFERENCE_TIME, 0, 2) + _REFERENCE.pack(ntp))


def since_reference(*, sender: int, reference: ReferenceTime, delay: int = 0) -> bytes:
    """Answer a reference time that came `delay` / 65536 s ago (RFC 3611 section 4.5)."""
    block = _SINCE.pack(reference.ssrc, reference.ntp >> 16 & 0xFFFFFFFF, delay)
    return _frame(XR, 0, _WORD.pack(sender) + _XR_HEAD.pack(_XR_SINCE_REFERENCE, 0, 3) + block)
