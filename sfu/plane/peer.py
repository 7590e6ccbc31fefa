"""One peer of the reference plane: its keys, its address, and what it sends and gets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfu.core.media.addresses import PeerAddresses
from sfu.core.media.arrivals import Arrivals
from sfu.core.media.delivery import Delivery
from sfu.plane.api import Address, DeliverySnapshot, PeerSnapshot
from sfu.plane.context import PlaneContext
from sfu.plane.drops import DropReason
from shared.errors import BadPacket
from shared.rtc.srtp import SrtpKeys, SrtpSession

if TYPE_CHECKING:
    from sfu.plane.consumer import Consumer
    from sfu.plane.encoding import Encoding
    from sfu.plane.producer import Producer

MAX_SSRCS = 1024
"""SSRCs of a peer that are known at a time; each costs half a kilobyte. The one that was silent longest is retired for
a newer one. A simulcast track has six, so this is 170 tracks of which none has ended."""

MAX_RETIRED = 4096
"""Retired SSRCs that are remembered (16 KiB a peer at most). Their replay windows are gone, so that nothing under them
may be accepted again with these keys. Only who retires more than that can be sent old packets of its own again."""


class PlanePeer:
    """Sends silently drop while the peer has no keys or no address."""

    __slots__ = (
        "_context",
        "_retired",
        "_rtp",
        "_session",
        "_ssrcs",
        "_used",
        "addresses",
        "arrivals",
        "bytes_in",
        "bytes_out",
        "closed",
        "consumers",
        "consumers_by_ssrc",
        "delivery",
        "feedback_timer",
        "feedbacks_sent",
        "follows_delivery",
        "last_heard",
        "packets_in",
        "packets_out",
        "peer",
        "producers",
        "reference_answered_at",
        "report_pending",
        "reporting",
        "routes",
        "transport_cc",
    )

    def __init__(self, peer: int, context: PlaneContext) -> None:
        self.peer = peer
        self._context = context
        self._session: SrtpSession | None = None
        self._ssrcs: dict[int, int] = {}
        """SSRC -> how many packets had come when its last one did."""
        self._rtp: set[int] = set()
        """SSRCs that RTP has come with."""
        self._retired: dict[int, None] = {}
        """Oldest first."""
        self._used: set[int] = set()
        self.addresses = PeerAddresses()
        self.closed = False
        self.producers: dict[int, Producer] = {}
        self.consumers: dict[int, Consumer] = {}
        self.consumers_by_ssrc: dict[int, Consumer] = {}
        self.routes: dict[int, tuple[Encoding, bool] | None] = {}
        """SSRC -> (encoding, is RTX); None for an SSRC that was replaced and must not be bound again."""
        self.packets_in = self.bytes_in = self.packets_out = self.bytes_out = 0
        self.last_heard: float | None = None
        self.reference_answered_at: float | None = None
        self.reporting = False
        self.report_pending = False
        self.transport_cc = 0
        """The id of the transport-wide sequence number in what the peer sends; 0: none negotiated."""
        self.arrivals: Arrivals | None = None
        self.feedback_timer = False
        self.feedbacks_sent = 0
        self.delivery: Delivery | None = None
        """Of what it gets; None before a consumer has negotiated transport-wide sequence numbers."""
        self.follows_delivery = False

    @property
    def address(self) -> Address | None:
        """Where it is sent to; None when no address has earned that."""
        return self.addresses.sending.address if self.addresses.sending is not None else None

    @property
    def ready(self) -> bool:
        """Media can be sent to it."""
        return self._session is not None and self.addresses.sending is not None

    def refresh(self, *, now: float) -> None:
        """Whether media can be sent to it may have changed."""
        for consumer in self.consumers.values():
            consumer.producer.refresh_active()
            consumer.choose(now=now)

    def set_keys(self, keys: SrtpKeys) -> None:
        self._session = SrtpSession(keys)
        self.addresses.start_again()
        self._ssrcs.clear()
        self._retired.clear()
        self._rtp.clear()
        self.arrivals = None  # a new association starts its numbers again
        self._used = {ssrc for consumer in self.consumers.values() for ssrc in consumer.spec.ssrcs}

    def has_used(self, ssrc: int) -> bool:
        """Whether a consumer has had it with these keys.

        A second stream under one SSRC would repeat SRTP indexes, which gives AES-GCM's key away (RFC 7714 section 8.4).
        """
        return ssrc in self._used

    def claim(self, ssrcs: tuple[int, ...]) -> None:
        """Take them for a consumer that has passed all checks."""
        self._used.update(ssrcs)

    def release(self, ssrc: int) -> None:
        """Nothing will be sent with this SSRC any more."""
        if self._session is not None:
            self._session.forget_outgoing(ssrc)

    def unprotect(self, datagram: bytes, *, ssrc: int, rtcp: bool) -> bytes | None:
        """The plain packet; None when it was dropped and counted."""
        session = self._session
        if session is None:
            self._context.drops[DropReason.NO_KEYS] += 1
            return None
        if ssrc in self._retired:
            self._context.drops[DropReason.RETIRED_SSRC] += 1
            return None
        try:
            if rtcp:
                packet = session.unprotect_rtcp(datagram)
            elif ssrc in self._rtp:
                packet = session.unprotect(datagram)
            else:
                packet = session.unprotect_first(datagram, ssrc=ssrc)
                self._rtp.add(ssrc)
        except BadPacket:
            self._context.drops[DropReason.NOT_AUTHENTIC] += 1
            return None
        if ssrc not in self._ssrcs and len(self._ssrcs) >= MAX_SSRCS:
            self._retire(min(self._ssrcs, key=self._ssrcs.__getitem__), session)
        self.packets_in += 1
        self.bytes_in += len(datagram)
        self._ssrcs[ssrc] = self.packets_in
        return packet

    def _retire(self, ssrc: int, session: SrtpSession) -> None:
        """Forget all about an SSRC but that it was used."""
        del self._ssrcs[ssrc]
        self._rtp.discard(ssrc)
        session.forget_incoming(ssrc)
        self.routes.pop(ssrc, None)
        if len(self._retired) >= MAX_RETIRED:
            del self._retired[next(iter(self._retired))]
        self._retired[ssrc] = None

    def replace_route(self, ssrc: int) -> None:
        """An SSRC was replaced by another one and must not be bound again."""
        if ssrc in self._ssrcs:
            self.routes[ssrc] = None
        else:
            self.routes.pop(ssrc, None)

    def send_rtp(self, packet: bytes) -> bool:
        """Protect and send; False when that could not be done."""
        session, address = self._session, self.address
        if session is None or address is None:
            return False
        try:
            datagram = session.protect(packet)
        except BadPacket:
            self._context.drops[DropReason.NOT_SENT] += 1
            return False
        self._emit(datagram, address)
        return True

    def send_rtcp(self, compound: bytes) -> None:
        session, address = self._session, self.address
        if session is None or address is None:
            return
        try:
            datagram = session.protect_rtcp(compound)
        except BadPacket:
            self._context.drops[DropReason.NOT_SENT] += 1
            return
        self._emit(datagram, address)

    def _emit(self, datagram: bytes, address: Address) -> None:
        self._context.send(datagram, address)
        self.packets_out += 1
        self.bytes_out += len(datagram)
        self._context.packets_out += 1
        self._context.bytes_out += len(datagram)

    def snapshot(self) -> PeerSnapshot:
        return PeerSnapshot(
            peer=self.peer,
            packets_in=self.packets_in,
            bytes_in=self.bytes_in,
            packets_out=self.packets_out,
            bytes_out=self.bytes_out,
            last_heard=self.last_heard,
            feedbacks_sent=self.feedbacks_sent,
            delivery=_delivery_snapshot(self.delivery) if self.delivery is not None else None,
        )


def _delivery_snapshot(delivery: Delivery) -> DeliverySnapshot:
    return DeliverySnapshot(
        sent=delivery.packets,
        feedbacks=delivery.feedbacks,
        acknowledged=delivery.acknowledged,
        acknowledged_bytes=delivery.acknowledged_bytes,
        lost=delivery.lost,
        receive_rate_bps=delivery.receive_rate_bps,
    )
