"""Transport-wide congestion control of the reference plane: feedback to publishers, and from viewers."""

from __future__ import annotations

from sfu.core.media.arrivals import SOON_S, Arrivals
from sfu.plane.api import DeliveryReported
from sfu.plane.context import PlaneContext
from sfu.plane.peer import PlanePeer
from shared.rtc import rtp, transport_cc


class TransportFeedbacks:
    """Every packet of a peer counts, whatever becomes of it after: a sender that probes waits for just these."""

    def __init__(self, context: PlaneContext) -> None:
        self._context = context

    # -- to publishers

    def arrived(self, peer: PlanePeer, packet: bytes, header: rtp.RtpHeader, *, now: float) -> None:
        """Note the number of an authentic packet, and tell its sender when that is due."""
        sequence = _sequence(packet, header, peer.transport_cc)
        if sequence is None:
            return
        if peer.arrivals is None:
            peer.arrivals = Arrivals()
        if not peer.arrivals.note(sequence, arrived=now, ssrc=header.ssrc, now=now):
            return
        if peer.arrivals.due(now=now):
            self._send(peer, peer.arrivals)
        elif not peer.feedback_timer:
            peer.feedback_timer = True
            self._context.timers.add(now + SOON_S, lambda at: self._on_timer(peer, at))

    def _on_timer(self, peer: PlanePeer, now: float) -> float | None:
        arrivals = peer.arrivals
        if peer.closed or arrivals is None or arrivals.deadline is None:
            peer.feedback_timer = False
            return None
        if not arrivals.due(now=now):
            return arrivals.deadline
        peer.feedback_timer = False
        self._send(peer, arrivals)
        return None

    def _send(self, peer: PlanePeer, arrivals: Arrivals) -> None:
        for report in arrivals.take():
            # Senders take feedback only with an SSRC of theirs in it.
            packet = transport_cc.build(
                sender=self._context.ssrc,
                media=arrivals.ssrc,
                base=report.base,
                count=peer.feedbacks_sent,
                arrivals=report.arrivals,
            )
            peer.feedbacks_sent += 1
            self._context.feedbacks_sent += 1
            peer.send_rtcp(packet)

    # -- from viewers

    def heard(self, peer: PlanePeer, feedback: transport_cc.TransportFeedback, *, now: float) -> None:
        """Take a feedback about what the peer was sent."""
        self._context.feedbacks_received += 1
        if peer.delivery is None:
            return
        news = peer.delivery.heard(feedback)
        if news and peer.follows_delivery:
            self._context.events.append(DeliveryReported(peer.peer, now, tuple(news)))


def _sequence(packet: bytes, header: rtp.RtpHeader, identifier: int) -> int | None:
    """The transport-wide sequence number of a packet, under its negotiated id."""
    if not identifier:
        return None
    for number, start, end in rtp.walk_extensions(packet, header):
        if number == identifier:
            return int.from_bytes(packet[start:end], "big") if end - start == 2 else None
    return None
