"""RTCP of the reference plane: what peers report and ask for, and the reports they get."""

from __future__ import annotations

from sfu.core.media.reports import SenderClock
from sfu.plane.api import PeerHeard
from sfu.plane.context import PlaneContext
from sfu.plane.drops import DropReason
from sfu.plane.peer import PlanePeer
from sfu.plane.transport_feedback import TransportFeedbacks
from shared.errors import BadPacket
from shared.rtc import rtcp
from shared.rtc.transport_cc import TransportFeedback

FIRST_REPORT_S = 0.1
"""From a new SSRC's first packet to the report that covers it: Chromium sends MID and RID until then."""

REPORT_S = 1.0
MAX_REMB_SSRCS = 64
REFERENCE_EVERY_S = 0.1
"""Between two answers to a peer's reference times; a browser sends one with each of its reports, a few a second."""


class Feedback:
    """Reads compounds, and reports to each peer that sends: receiver reports and REMB."""

    def __init__(self, context: PlaneContext, transport: TransportFeedbacks) -> None:
        self._context = context
        self._transport = transport

    # -- arriving

    def handle(self, peer: PlanePeer, compound: bytes, *, now: float) -> None:
        try:
            packets = rtcp.parse(compound)
        except BadPacket:
            self._context.drops[DropReason.BAD_RTCP] += 1
            return
        self.heard(peer, now=now)
        for packet in packets:
            self._one(peer, packet, now=now)
        self._reference_time(peer, packets, now=now)

    def heard(self, peer: PlanePeer, *, now: float) -> None:
        """An authentic packet came."""
        if peer.last_heard is None:
            self._context.events.append(PeerHeard(peer.peer))
        peer.last_heard = now

    def _one(self, peer: PlanePeer, packet: rtcp.RtcpPacket, *, now: float) -> None:
        match packet:
            case rtcp.SenderReport():
                self._sender_report(peer, packet, now=now)
                self._blocks(peer, packet.blocks, now=now)
            case rtcp.ReceiverReport():
                self._blocks(peer, packet.blocks, now=now)
            case rtcp.Nack():
                self._context.nacks_received += len(packet.sequences)
                if (consumer := peer.consumers_by_ssrc.get(packet.media)) is not None:
                    consumer.nack(packet.sequences, now=now)
            case rtcp.PictureLoss():
                self._picture_loss(peer, packet.media, now=now)
            case rtcp.FullIntraRequest():
                for ssrc in packet.media:
                    self._picture_loss(peer, ssrc, now=now)
            case TransportFeedback():
                self._transport.heard(peer, packet, now=now)
            case rtcp.Bye():
                self._bye(peer, packet.ssrcs)
            case _:
                pass  # SDES, REMB: nothing here depends on them

    def _sender_report(self, peer: PlanePeer, report: rtcp.SenderReport, *, now: float) -> None:
        route = peer.routes.get(report.ssrc)
        if route is None:
            return
        encoding, is_rtx = route
        stats = encoding.rtx_stats if is_rtx else encoding.stats
        if stats is None:
            return
        stats.sender_report(report.ntp, now=now)
        if not is_rtx:
            encoding.clock = SenderClock(
                ntp=report.ntp, timestamp=report.rtp_timestamp, clock_rate=encoding.clock_rate, now=now
            )

    def _blocks(self, peer: PlanePeer, blocks: tuple[rtcp.ReportBlock, ...], *, now: float) -> None:
        for block in blocks:
            if (consumer := peer.consumers_by_ssrc.get(block.ssrc)) is not None:
                consumer.reported(block, now=now)

    def _picture_loss(self, peer: PlanePeer, ssrc: int, *, now: float) -> None:
        self._context.plis_received += 1
        if (consumer := peer.consumers_by_ssrc.get(ssrc)) is not None:
            consumer.picture_loss(now=now)

    def _reference_time(self, peer: PlanePeer, packets: list[rtcp.RtcpPacket], *, now: float) -> None:
        """Answer at once, but no flood: by it a browser that only receives knows its round trip, and asks again for
        what was lost after that instead of after 100 ms."""
        last = peer.reference_answered_at
        if last is not None and now - last < REFERENCE_EVERY_S:
            return
        for packet in packets:
            if isinstance(packet, rtcp.ReferenceTime):
                peer.reference_answered_at = now
                peer.send_rtcp(rtcp.since_reference(sender=self._context.ssrc, reference=packet))
                return

    def _bye(self, peer: PlanePeer, ssrcs: tuple[int, ...]) -> None:
        for ssrc in ssrcs:
            route = peer.routes.get(ssrc)
            if route is not None and not route[1]:
                route[0].producer.bye(ssrc)

    # -- leaving

    def new_ssrc(self, peer: PlanePeer, *, now: float) -> None:
        """An SSRC was bound: report on it soon, and then once a second."""
        if not peer.report_pending:
            peer.report_pending = True
            self._context.timers.add(now + FIRST_REPORT_S, lambda at: self._report_soon(peer, at))
        if not peer.reporting:
            peer.reporting = True
            self._context.timers.add(now + REPORT_S, lambda at: self._report(peer, at))

    def _report_soon(self, peer: PlanePeer, now: float) -> None:
        peer.report_pending = False
        self._report(peer, now)

    def _report(self, peer: PlanePeer, now: float) -> float | None:
        if peer.closed:
            return None
        encodings = [encoding for producer in peer.producers.values() for encoding in producer.encodings.values()]
        stats = [s for encoding in encodings for s in (encoding.stats, encoding.rtx_stats) if s is not None]
        blocks = [s.block(now=now) for s in stats]
        ours = self._context.ssrc
        compounds = [
            rtcp.receiver_report(ours, blocks[start : start + rtcp.MAX_BLOCKS])
            for start in range(0, max(len(blocks), 1), rtcp.MAX_BLOCKS)
        ]
        compounds[-1] += self._remb(peer)
        for compound in compounds:
            peer.send_rtcp(compound)
        return now + REPORT_S

    def _remb(self, peer: PlanePeer) -> bytes:
        """The bandwidth of a peer's videos together; without it a browser never sends its highest layer."""
        videos = [producer for producer in peer.producers.values() if producer.spec.kind == "video"]
        ssrcs = [
            encoding.ssrc for video in videos for encoding in video.encodings.values() if encoding.ssrc is not None
        ]
        if not ssrcs:
            return b""
        allowed = sum(video.spec.remb_bps for video in videos)
        return rtcp.remb(sender=self._context.ssrc, bitrate_bps=allowed, ssrcs=ssrcs[:MAX_REMB_SSRCS])
