"""One layer of a producer as it arrives: order, loss and its repair, key frames, reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sfu.core.media.keyframes import HIGH_LAYER_INTERVAL_S, LOW_LAYER_INTERVAL_S, KeyframeRequests
from sfu.core.media.missing import LOOK_S, MissingPackets
from sfu.core.media.parameter_sets import ParameterSets
from sfu.core.media.reports import ReceiveStats, SenderClock
from sfu.core.media.ring import RING_SIZE, PacketRing, Put
from sfu.plane.api import EncodingSnapshot, ProducerCodec
from sfu.plane.context import PlaneContext
from sfu.plane.drops import DropReason
from sfu.plane.packet import MediaPacket
from shared.errors import BadPacket
from shared.rtc import h264, rtcp, rtp, vp8

if TYPE_CHECKING:
    from sfu.plane.producer import Producer

KEYFRAME_CODECS = frozenset({"VP8", "H264"})
"""Codecs whose key frames are recognised; consumers of others start with any packet."""


class Encoding:
    """Packets come in by `take` and `take_rtx`; what is new and usable comes back as a `MediaPacket`."""

    __slots__ = (
        "_context",
        "_highest",
        "_keyframe_timer",
        "_nack_timer",
        "clock",
        "clock_rate",
        "codecs",
        "ended",
        "keyframe_timestamp",
        "keyframes",
        "keyframes_seen",
        "last_media",
        "missing",
        "opaque",
        "plis",
        "probes",
        "producer",
        "repaired",
        "requests_nacks",
        "rid",
        "ring",
        "rtx_ssrc",
        "rtx_stats",
        "sets",
        "ssrc",
        "stats",
    )

    def __init__(self, producer: Producer, rid: str, *, lowest: bool, context: PlaneContext) -> None:
        self.producer = producer
        self.rid = rid
        self._context = context
        self.codecs: Mapping[int, ProducerCodec] = producer.media_codecs
        self.opaque = producer.spec.kind == "audio"
        self.requests_nacks = producer.spec.nack and producer.spec.kind == "video"
        self.ssrc: int | None = None
        """None before the first packet, and once another SSRC has taken its place: then nothing is asked for."""
        self.rtx_ssrc: int | None = None
        self.clock_rate = 0
        self.stats: ReceiveStats | None = None
        self.rtx_stats: ReceiveStats | None = None
        self.clock: SenderClock | None = None
        self.ring: PacketRing[MediaPacket] = PacketRing()
        self.missing = MissingPackets()
        self.sets = ParameterSets(producer.spec.parameter_sets)
        self.keyframes = KeyframeRequests(interval_s=LOW_LAYER_INTERVAL_S if lowest else HIGH_LAYER_INTERVAL_S)
        self.last_media: float | None = None
        self.ended = False
        self.keyframes_seen = self.plis = self.repaired = self.probes = 0
        self.keyframe_timestamp = -1
        self._highest = -1
        self._nack_timer = self._keyframe_timer = False

    # -- arriving packets

    def take(self, packet: bytes, header: rtp.RtpHeader, *, now: float) -> MediaPacket | None:
        """A packet of the media SSRC."""
        codec = self.codecs.get(header.payload_type)
        if codec is None:
            self._context.drops[DropReason.FOREIGN_CODEC] += 1
            return None
        stats = self.stats
        if stats is None:
            stats = self.stats = ReceiveStats(ssrc=header.ssrc, clock_rate=codec.clock_rate, sequence=header.sequence)
            self.clock_rate = codec.clock_rate
            self.opaque = codec.name.upper() not in KEYFRAME_CODECS
        # Where retransmissions have an SSRC of their own, what comes on this one is late, not sent again.
        original = self.rtx_ssrc is not None
        media = self._admit(packet, header, codec, stats.extend(header.sequence), original=original, now=now)
        if media is not None:
            stats.count(media.index, header.timestamp, len(packet), now=now)
        return media

    def take_rtx(self, packet: bytes, header: rtp.RtpHeader, *, now: float) -> MediaPacket | None:
        """A packet of the RTX SSRC: the original packet when that is still of use (RFC 4588 section 4)."""
        self._context.rtx_received += 1
        if self.rtx_stats is None:
            self.rtx_stats = ReceiveStats(ssrc=header.ssrc, clock_rate=90_000, sequence=header.sequence)
        index = self.rtx_stats.extend(header.sequence)
        self.rtx_stats.count(index, header.timestamp, len(packet), now=now)
        codec = self.producer.rtx_codecs.get(header.payload_type)
        stats = self.stats
        if codec is None or stats is None or header.payload_end - header.payload_start <= 2:
            # Before the first media packet nothing can be missing: a bandwidth probe.
            self._probe()
            return None
        original = int.from_bytes(packet[header.payload_start : header.payload_start + 2], "big")
        header.payload_start += 2
        header.payload_type = codec.payload_type
        index = stats.extend(original)
        if index <= self._highest - RING_SIZE or self.ring.get(index) is not None:
            self._probe()
            return None
        media = self._admit(packet, header, codec, index, original=False, now=now)
        if media is not None:
            self.repaired += 1
        return media

    def _probe(self) -> None:
        self.probes += 1
        self._context.drops[DropReason.PROBE] += 1

    def _admit(
        self, packet: bytes, header: rtp.RtpHeader, codec: ProducerCodec, index: int, *, original: bool, now: float
    ) -> MediaPacket | None:
        media = MediaPacket(self, index, packet, header, now)
        put = self.ring.put(media)
        if put is Put.DUPLICATE:
            self._context.drops[DropReason.DUPLICATE] += 1
            return None
        if put is Put.LATE:
            # No restart of the sender's numbers: SRTP never goes back under the same keys (RFC 3711 section 3.3.1).
            self._context.drops[DropReason.LATE] += 1
            return None
        if index > self._highest:
            if self._highest >= 0 and index > self._highest + 1:
                self._gap(self._highest + 1, index, now=now)
            self._highest = index
        else:
            self.missing.arrived(index, original=original, now=now)
        self.last_media = now
        if media.payload:
            self._inspect(media, codec)
        else:
            self._probe()
        return media

    def _inspect(self, media: MediaPacket, codec: ProducerCodec) -> None:
        """Find out whether a key frame begins here."""
        if self.opaque:
            return
        if codec.name.upper() == "VP8":
            try:
                media.vp8 = vp8.parse(media.payload)
            except BadPacket:
                # Its number is taken and not asked for again; consumers close up over it as over padding.
                media.payload = b""
                self._context.drops[DropReason.BAD_PAYLOAD] += 1
                return
            media.keyframe_start = media.vp8.keyframe_start
        else:
            self._inspect_h264(media)
        if media.keyframe_start and media.timestamp != self.keyframe_timestamp:
            self.keyframe_timestamp = media.timestamp
            self.keyframes_seen += 1
            self.keyframes.keyframe_seen()
            self.missing.forget_before(media.index)

    def _inspect_h264(self, media: MediaPacket) -> None:
        """A decoder can begin with an SPS, and with an IDR picture whose parameter sets we can send before it.

        Encoders send SPS, PPS and IDR in one aggregate or one after another with one timestamp; the first of them
        counts as the start, so that a decoder that begins there has all it needs.
        """
        units = h264.read(media.payload)
        for unit in units.sets:
            self.sets.keep(unit, media.index)
        media.keyframe_start = units.has_sps
        if units.has_idr and not units.has_sps and self.sets.complete:
            media.keyframe_start = True
            media.led_by(self.sets.aggregate())

    # -- asking the publisher

    def _gap(self, first: int, end: int, *, now: float) -> None:
        if not self.requests_nacks:
            return
        if not self.missing.gap(first, end, now=now):
            self.request_keyframe(now=now)
            return
        self._ask_missing(now)
        if not self._nack_timer:
            self._nack_timer = True
            self._context.timers.add(now + LOOK_S, self._on_nack_timer)

    def _ask_missing(self, now: float) -> None:
        asking = self.missing.due(now=now)
        if not asking or self.ssrc is None:
            return
        sequences = [index & 0xFFFF for index in asking]
        self._context.nacks_sent += len(sequences)
        self.producer.peer.send_rtcp(rtcp.nack(sender=self._context.ssrc, media=self.ssrc, sequences=sequences))

    def _on_nack_timer(self, now: float) -> float | None:
        self._ask_missing(now)
        if not self.missing or self.producer.closed or self.ssrc is None:
            self._nack_timer = False
            return None
        return now + LOOK_S

    def forget(self) -> None:
        """It was replaced, as many others were after it: nothing of it can be sent again."""
        self.clock = None
        self.ring = PacketRing()
        self.missing = MissingPackets()

    def request_keyframe(self, *, now: float) -> None:
        """Ask for a key frame, at once or when the throttle allows, and again until one comes."""
        if self.opaque:
            return
        if self.ssrc is None or not self.producer.peer.ready:
            # Nothing to ask yet, and what comes first will be a key frame; a consumer that waits looks again.
            return
        if self.keyframes.request(now=now):
            self._send_pli()
        if not self._keyframe_timer:
            self._keyframe_timer = True
            self._context.timers.add(self.keyframes.next_at(now=now), self._on_keyframe_timer)

    def _on_keyframe_timer(self, now: float) -> float | None:
        if not self.producer.closed and self.keyframes.due(now=now):
            self._send_pli()
        if not self.keyframes.wanted or self.producer.closed or self.ssrc is None:
            self._keyframe_timer = False
            return None
        return self.keyframes.next_at(now=now)

    def _send_pli(self) -> None:
        if self.ssrc is None or not self.producer.peer.ready:
            return
        self.plis += 1
        self._context.plis_sent += 1
        self.producer.peer.send_rtcp(rtcp.picture_loss(sender=self._context.ssrc, media=self.ssrc))

    # -- telling

    def snapshot(self) -> EncodingSnapshot:
        stats = self.stats
        return EncodingSnapshot(
            rid=self.rid,
            ssrc=self.ssrc or 0,
            packets=stats.received if stats else 0,
            bytes=stats.bytes if stats else 0,
            lost=stats.lost if stats else 0,
            jitter_ms=1000.0 * stats.jitter / stats.clock_rate if stats else 0.0,
            keyframes=self.keyframes_seen,
            nacked=self.missing.asked,
            repaired=self.repaired,
            plis=self.plis,
            probes=self.probes,
        )
