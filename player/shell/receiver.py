"""Takes the streams of a subscribe connection apart into Opus packets and frames; reports on them, repairs them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from player.core.frames import Assembler
from player.core.reception import Reception
from player.core.session_sdp import Incoming
from player.core.track import original_packet
from player.shell.transport import MediaTransport
from shared.errors import BadPacket
from shared.rtc import rtcp, rtp

REPORT_EVERY_S = 1.0
KEY_REQUEST_EVERY_S = 0.5
"""Between two PLIs for a stream: the SFU merges them, so asking more often gains nothing."""

UnitHandler = Callable[[Incoming, bytes, int, float], None]
"""Stream, Opus packet or frame, RTP timestamp, arrival [monotonic seconds]."""
PacketHandler = Callable[[Incoming, bytes, float], None]
"""Stream, decrypted RTP packet, arrival [monotonic seconds]."""
PacketTap = Callable[[str, Incoming, bytes, float], None]
"""The same, with the SFU that it came from in front."""


@dataclass(slots=True)
class Stream:
    """One publication as it comes over this connection."""

    spec: Incoming
    reception: Reception
    assembler: Assembler | None
    """None for audio."""
    asked_for_key: float


class Receiver:
    """All streams of one connection. Feed it plain packets.

    `on_packet`, if set, gets each media packet before it is taken apart, and what a retransmission repeats.
    """

    def __init__(
        self,
        transport: MediaTransport,
        *,
        on_unit: UnitHandler,
        on_packet: PacketHandler | None = None,
        ssrc: int,
        cname: str,
    ) -> None:
        self.on_packet = on_packet
        self.bad_packets = 0
        self.unknown_packets = 0
        self.repaired = 0
        self.keys_asked = 0
        self.transport = transport
        """Where reports go; another one when the connection was opened again."""
        self._on_unit = on_unit
        self._ssrc = ssrc
        self._cname = cname
        self._streams: dict[int, Stream] = {}
        self._repairs: dict[int, Stream] = {}
        self._next_report = 0.0

    def set_streams(self, incoming: Iterable[Incoming]) -> None:
        """The streams of the newest offer; one that goes on as it was keeps its state."""
        streams: dict[int, Stream] = {}
        for spec in incoming:
            known = self._streams.get(spec.ssrc)
            streams[spec.ssrc] = known if known is not None and known.spec == spec else _stream(spec)
        self._streams = streams
        self._repairs = {s.spec.rtx_ssrc: s for s in streams.values() if s.spec.rtx_ssrc is not None}

    def on_rtp(self, packet: bytes, at: float) -> None:
        """A packet arrived."""
        try:
            header = rtp.parse(packet)
            stream = self._streams.get(header.ssrc)
            if stream is not None and header.payload_type == stream.spec.pt:
                self._media(stream, header, packet, at)
            elif header.ssrc in self._repairs:
                self._repair(self._repairs[header.ssrc], header, packet, at)
            else:
                self.unknown_packets += 1
        except BadPacket:
            self.bad_packets += 1

    def _media(self, stream: Stream, header: rtp.RtpHeader, packet: bytes, at: float) -> None:
        stream.reception.packet(header.sequence, header.timestamp, at=at)
        if at >= self._next_report:
            self._report(at)
        payload = packet[header.payload_start : header.payload_end]
        if not payload:
            return  # padding that probes the bandwidth
        if self.on_packet is not None:
            self.on_packet(stream.spec, packet, at)
        if stream.assembler is None:
            self._on_unit(stream.spec, payload, header.timestamp, at)
            return
        self._frame_part(stream, stream.assembler, header.sequence, header, payload, at)
        if stream.reception.missing:
            self._ask_again(stream, at)
        if stream.assembler.wants_key and at - stream.asked_for_key > KEY_REQUEST_EVERY_S:
            self._ask_for_key(stream, at)

    def _repair(self, stream: Stream, header: rtp.RtpHeader, packet: bytes, at: float) -> None:
        """A retransmission: the original sequence number comes first (RFC 4588 section 4)."""
        payload = packet[header.payload_start : header.payload_end]
        if len(payload) < 3 or stream.assembler is None:
            return  # a probe
        sequence = int.from_bytes(payload[:2], "big")
        stream.reception.repaired(sequence)
        self.repaired += 1
        if self.on_packet is not None:
            self.on_packet(stream.spec, _original(stream.spec, header, packet), at)
        self._frame_part(stream, stream.assembler, sequence, header, payload[2:], at)

    def _frame_part(
        self, stream: Stream, assembler: Assembler, sequence: int, header: rtp.RtpHeader, payload: bytes, at: float
    ) -> None:
        for timestamp, frame in assembler.add(sequence, header.timestamp, header.marker, payload):
            self._on_unit(stream.spec, frame, timestamp, at)

    def _ask_again(self, stream: Stream, at: float) -> None:
        sequences = stream.reception.to_ask_for(now=at)
        if sequences:
            nack = rtcp.nack(sender=self._ssrc, media=stream.spec.ssrc, sequences=sequences)
            self.transport.send_rtcp(rtcp.receiver_report(self._ssrc, ()) + nack)

    def _ask_for_key(self, stream: Stream, at: float) -> None:
        stream.asked_for_key = at
        self.keys_asked += 1
        pli = rtcp.picture_loss(sender=self._ssrc, media=stream.spec.ssrc)
        self.transport.send_rtcp(rtcp.receiver_report(self._ssrc, ()) + pli)

    def on_rtcp(self, compound: bytes, at: float) -> None:
        """Sender reports are what ours refer to."""
        try:
            packets = rtcp.parse(compound)
        except BadPacket:
            self.bad_packets += 1
            return
        for packet in packets:
            stream = self._streams.get(packet.ssrc) if isinstance(packet, rtcp.SenderReport) else None
            if stream is not None and isinstance(packet, rtcp.SenderReport):
                stream.reception.sender_report(packet.ntp, at=at)

    def _report(self, at: float) -> None:
        self._next_report = at + REPORT_EVERY_S
        blocks = [s.reception.report(now=at) for s in self._streams.values() if s.reception.received]
        compound = rtcp.receiver_report(self._ssrc, blocks[: rtcp.MAX_BLOCKS])
        self.transport.send_rtcp(compound + rtcp.source_description(self._ssrc, self._cname))


def _original(spec: Incoming, header: rtp.RtpHeader, packet: bytes) -> bytes:
    start, end = header.payload_start, header.payload_end
    return original_packet(packet, payload_start=start, payload_end=end, ssrc=spec.ssrc, payload_type=spec.pt)


def _stream(spec: Incoming) -> Stream:
    video = spec.kind == "video"
    reception = Reception(ssrc=spec.ssrc, clock=spec.clock, repairable=video and spec.rtx_ssrc is not None)
    # The SFU asks the publisher for a key frame when a player subscribes; we need not ask as well.
    return Stream(spec, reception, Assembler() if video else None, asked_for_key=time.monotonic())
