"""One producer's track on its way to one peer: rewriting, layers, retransmissions, sender reports."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from sfu.core.media.reports import RoundTrip
from sfu.core.media.retransmit import Resend, ResendGate
from sfu.core.media.rewrite import Last, Shifts, Span, SpanMap, switch_timestamp
from sfu.plane.api import ConsumerFlowing, ConsumerSnapshot, ConsumerSpec, LayerSwitched
from sfu.plane.context import PlaneContext
from sfu.plane.drops import DropReason
from sfu.plane.packet import ExtensionPlan, MediaPacket, with_sequence
from sfu.plane.peer import PlanePeer
from shared.rtc import rtcp, vp8
from shared.rtc.rtp import sequence_delta

if TYPE_CHECKING:
    from sfu.plane.encoding import Encoding
    from sfu.plane.producer import Producer

FIRST_SENDER_REPORT_S = 0.1
SENDER_REPORT_S = 1.0
"""Between sender reports of a consumer."""

_HEADER = struct.Struct("!BBHII")
_OSN = struct.Struct("!H")
_DROPPED = {Resend.REPEATED: DropReason.RESEND_REPEATED, Resend.OVER_BUDGET: DropReason.RESEND_OVER_BUDGET}


class Consumer:
    """`source` is the layer it gets now, `target` the one it should get; they differ until the next key frame."""

    __slots__ = (
        "_accepted",
        "_context",
        "_flowing",
        "_fraction_lost",
        "_gate",
        "_nacks",
        "_newest",
        "_newest_shifts",
        "_octets",
        "_plan",
        "_plis",
        "_preferred",
        "_resent",
        "_round_trip",
        "_rtx_sequence",
        "_sent",
        "_sent_bytes",
        "_spans",
        "_unanswered",
        "closed",
        "highest_out",
        "paused",
        "peer",
        "producer",
        "source",
        "spec",
        "target",
    )

    def __init__(
        self, spec: ConsumerSpec, producer: Producer, peer: PlanePeer, plan: ExtensionPlan, context: PlaneContext
    ) -> None:
        self.spec = spec
        self.peer = peer
        self.producer = producer
        self._plan = plan
        self._context = context
        wanted = spec.codec.upper()
        self._accepted = frozenset(pt for pt, codec in producer.media_codecs.items() if codec.name.upper() == wanted)
        self.paused = self.closed = self._flowing = False
        self._preferred: str | None = None
        self.source: Encoding | None = None
        self.target: Encoding | None = None
        self._spans: SpanMap[Encoding] = SpanMap()
        # Under half the range: SRTP's rollover counter starts at 0 on both sides only if no early packet is lost.
        self.highest_out = 0x10000 + context.rng.randrange(0x4000)
        self._rtx_sequence = context.rng.randrange(0x4000)
        self._newest: MediaPacket | None = None
        self._newest_shifts = Shifts(0, 0, 0, 0)
        self._gate = ResendGate()
        self._round_trip = RoundTrip()
        self._sent = self._sent_bytes = self._octets = 0
        self._nacks = self._resent = self._unanswered = self._plis = 0
        self._fraction_lost = 0.0

    # -- which layer

    def set_layer(self, rid: str | None, *, now: float) -> None:
        self._preferred = rid
        self.choose(now=now)

    def choose(self, *, now: float, ask: bool = True) -> None:
        """Look again at which layer to get, and ask for its key frame while it is not the one being sent."""
        self.target = self.producer.target(self._preferred) or self.target
        waiting = self.target is not self.source and not self.paused and self.peer.ready
        if ask and waiting and self.target is not None:
            self.target.request_keyframe(now=now)

    def restart(self, *, now: float) -> None:
        """Go on at the next key frame, with continuous numbers."""
        self.source = None
        self.choose(now=now)

    def needs(self, encoding: Encoding) -> bool:
        """Whether this consumer may still be asked for its packets."""
        newest = self._newest.encoding if self._newest is not None else None
        return encoding in (self.source, self.target, newest) or self._spans.uses(encoding)

    def let_go(self, encoding: Encoding) -> None:
        """It has been forgotten."""
        if self.source is encoding:
            self.source = None
        if self.target is encoding:
            self.target = None

    # -- forwarding

    def forward(self, packet: MediaPacket, now: float) -> None:
        """Send a new packet of the producer, if this consumer is to have it."""
        newest = self._newest
        if packet.encoding is not self.source:
            span = self._switch(packet, now)
            if span is None:
                return
            if packet.lead is not None:
                self._emit_media(packet.lead, span.shifts, span.out_start, now)
        else:
            span = self._spans.current
            assert span is not None
            if packet.index < span.in_start:
                span = self._spans.for_late(packet.encoding, packet.index)
                if span is None:
                    return
        if packet.payload_type not in self._accepted:
            self._context.drops[DropReason.FOREIGN_CODEC] += 1
            return
        out_index = packet.index + span.shifts.sequence
        if out_index > self.highest_out:
            if not packet.payload and span is self._spans.current:
                self._spans.skip(packet.index)
                return
            self.highest_out = out_index
            self._newest = packet
            self._newest_shifts = span.shifts
        if self._emit_media(packet, span.shifts, out_index, now) and newest is None:
            self._flow(now)

    def _emit_media(self, packet: MediaPacket, shifts: Shifts, out_index: int, now: float) -> bool:
        block = self._numbered(packet.block(self._plan, now))
        payload = self._payload(packet, shifts)
        head = _HEADER.pack(
            0x90 if block else 0x80,
            packet.marker | self.spec.payload_type,
            out_index & 0xFFFF,
            (packet.timestamp + shifts.timestamp) & 0xFFFFFFFF,
            self.spec.ssrc,
        )
        return self._emit(head + block + payload, len(payload), ssrc=self.spec.ssrc, now=now)

    def _numbered(self, block: bytes) -> bytes:
        if not self._plan.sequenced or self.peer.delivery is None:
            return block
        return with_sequence(block, self.peer.delivery.sequence)

    def _payload(self, packet: MediaPacket, shifts: Shifts) -> bytes:
        if packet.vp8 is None or not (shifts.picture_id or shifts.tl0):
            return packet.payload
        return vp8.shifted(packet.payload, packet.vp8, picture_id_shift=shifts.picture_id, tl0_shift=shifts.tl0)

    def _emit(self, packet: bytes, octets: int, *, ssrc: int, now: float) -> bool:
        if not self.peer.send_rtp(packet):
            return False
        if self._plan.sequenced and self.peer.delivery is not None:
            self.peer.delivery.sent(size=len(packet), ssrc=ssrc, now=now)
        self._sent += 1
        self._sent_bytes += len(packet)
        self._octets += octets
        self._context.forwarded += 1
        self._context.forwarded_bytes += len(packet)
        return True

    def _flow(self, now: float) -> None:
        self._flowing = True
        self._context.events.append(ConsumerFlowing(self.spec.consumer))
        self._context.timers.add(now + FIRST_SENDER_REPORT_S, self._report)

    def _switch(self, packet: MediaPacket, now: float) -> Span[Encoding] | None:
        """Begin with this packet's layer where that may be: at a key frame of the target, at first of any layer."""
        encoding = packet.encoding
        starting = self.source is None
        if encoding.opaque:
            may_begin = encoding is self.target or starting
        else:
            may_begin = packet.keyframe_start and (encoding is self.target or starting)
        if not may_begin or not packet.payload or packet.payload_type not in self._accepted:
            return None
        self.source = encoding
        if encoding.rid:
            self._context.events.append(LayerSwitched(self.spec.consumer, encoding.rid))
        first = self.highest_out + 1 if packet.lead is None else self.highest_out + 2
        return self._spans.begin(encoding, packet.index, self.highest_out + 1, self._shifts_for(packet, first, now))

    def _shifts_for(self, packet: MediaPacket, out_index: int, now: float) -> Shifts:
        sequence = out_index - packet.index
        newest, shifts = self._newest, self._newest_shifts
        if newest is None:
            return Shifts(sequence, 0, 0, 0)
        if newest.encoding is packet.encoding and packet.index > newest.index:
            # After a pause: time and pictures have gone on at the publisher as well.
            return Shifts(sequence, shifts.timestamp, shifts.picture_id, shifts.tl0)
        last = Last(
            timestamp=(newest.timestamp + shifts.timestamp) & 0xFFFFFFFF,
            picture_id=newest.vp8.picture_id + shifts.picture_id if newest.vp8 else -1,
            tl0=newest.vp8.tl0 + shifts.tl0 if newest.vp8 else -1,
            at=newest.arrived,
        )
        timestamp = switch_timestamp(
            aligned=self._aligned(packet, newest, shifts.timestamp),
            last=last,
            clock_rate=packet.encoding.clock_rate,
            now=now,
        )
        picture_id = tl0 = 0
        if packet.vp8 is not None and newest.vp8 is not None:
            picture_id = last.picture_id + 1 - packet.vp8.picture_id if packet.vp8.picture_id >= 0 else 0
            tl0 = last.tl0 + 1 - packet.vp8.tl0 if packet.vp8.tl0 >= 0 else 0
        return Shifts(sequence, timestamp - packet.timestamp, picture_id, tl0)

    def _aligned(self, packet: MediaPacket, newest: MediaPacket, shift: int) -> int | None:
        """The new layer's timestamp on the old layer's clock, as their sender reports pair them."""
        old, new = newest.encoding.clock, packet.encoding.clock
        if old is None or new is None:
            return None
        return (old.timestamp_of(new.ntp_of(packet.timestamp)) + shift) & 0xFFFFFFFF

    # -- feedback of the peer

    def nack(self, sequences: tuple[int, ...], *, now: float) -> None:
        """Send again what the peer misses and the ring still has."""
        for sequence in sequences:
            self._nacks += 1
            out_index = self.highest_out + sequence_delta(sequence, self.highest_out & 0xFFFF)
            span = self._spans.locate(out_index) if out_index <= self.highest_out else None
            packet = _sent_as(out_index, span) if span is not None else None
            if span is not None and packet is None and span.origin(out_index) in span.source.missing:
                self._context.drops[DropReason.RESEND_AWAITED] += 1
                continue
            # Without RTX a resend is the same to the byte, and a transport-wide number is never used twice.
            if span is None or packet is None or (self._plan.sequenced and not self.spec.has_rtx):
                self._unanswered += 1
                self._context.drops[DropReason.RESEND_UNKNOWN] += 1
                continue
            rtt_s = self._round_trip.least_s
            verdict = self._gate.ask(out_index, rtt_s=rtt_s, forwarded=self._sent - self._resent, now=now)
            if verdict is Resend.SEND:
                self._resend(packet, span.shifts, out_index, now)
            else:
                self._context.drops[_DROPPED[verdict]] += 1

    def _resend(self, packet: MediaPacket, shifts: Shifts, out_index: int, now: float) -> None:
        payload = self._payload(packet, shifts)
        payload_type, sequence, ssrc = self.spec.payload_type, out_index & 0xFFFF, self.spec.ssrc
        if self.spec.rtx_ssrc is not None and self.spec.rtx_payload_type is not None:
            block = self._numbered(self._plan.encode(packet, now))
            payload = _OSN.pack(sequence) + payload
            payload_type, ssrc = self.spec.rtx_payload_type, self.spec.rtx_ssrc
            self._rtx_sequence = sequence = (self._rtx_sequence + 1) & 0xFFFF
        else:
            # It must be the same packet to the byte: other bytes under one SRTP index give AES-GCM's key away.
            block = packet.block(self._plan, now)
        timestamp = (packet.timestamp + shifts.timestamp) & 0xFFFFFFFF
        head = _HEADER.pack(0x90 if block else 0x80, packet.marker | payload_type, sequence, timestamp, ssrc)
        if self._emit(head + block + payload, 0, ssrc=ssrc, now=now):
            self._resent += 1
            self._context.resent += 1

    def picture_loss(self, *, now: float) -> None:
        """The peer's decoder needs a key frame."""
        self._plis += 1
        wanted = self.source or self.target
        if wanted is not None:
            wanted.request_keyframe(now=now)

    def reported(self, block: rtcp.ReportBlock, *, now: float) -> None:
        self._fraction_lost = block.fraction_lost / 256
        if block.last_sr:
            self._round_trip.echoed(block.last_sr, block.delay_since_sr, now=now)

    def _report(self, now: float) -> float | None:
        """A sender report: the publisher's own pairing of NTP and RTP time, moved onto this consumer's timestamps."""
        if self.closed:
            return None
        newest = self._newest
        pairing = newest.encoding.clock.at(now=now) if newest is not None and newest.encoding.clock else None
        if pairing is None:
            return now + SENDER_REPORT_S
        ntp, timestamp = pairing
        report = rtcp.SenderReport(
            ssrc=self.spec.ssrc,
            ntp=ntp,
            rtp_timestamp=(timestamp + self._newest_shifts.timestamp) & 0xFFFFFFFF,
            packets=self._sent,
            octets=self._octets,
        )
        self._round_trip.report_sent(ntp, now=now)
        cname = self.spec.cname or "sluice"
        self.peer.send_rtcp(rtcp.sender_report(report) + rtcp.source_description(self.spec.ssrc, cname))
        return now + SENDER_REPORT_S

    def snapshot(self) -> ConsumerSnapshot:
        rtt_s = self._round_trip.rtt_s
        return ConsumerSnapshot(
            consumer=self.spec.consumer,
            peer=self.spec.peer,
            producer=self.spec.producer,
            flowing=self._flowing,
            paused=self.paused,
            rid=self.source.rid if self.source else "",
            packets=self._sent,
            bytes=self._sent_bytes,
            nacks=self._nacks,
            resent=self._resent,
            unanswered=self._unanswered,
            plis=self._plis,
            fraction_lost=self._fraction_lost,
            rtt_ms=None if rtt_s is None else 1000.0 * rtt_s,
        )


def _sent_as(out_index: int, span: Span[Encoding]) -> MediaPacket | None:
    """The packet under an output number of the span; None when it has left the ring, or never came."""
    ring, index = span.source.ring, span.origin(out_index)
    if index >= span.in_start:
        return ring.get(index)
    # What was sent before the first packet is kept with it.
    first = ring.get(span.in_start)
    return first.lead if first is not None else None
