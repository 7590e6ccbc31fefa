"""Where a media datagram enters: whose it is, SRTP undone, the layer of its SSRC found."""

from __future__ import annotations

from sfu.core.media.addresses import KnownAddress
from sfu.core.media.binder import Sight, bind
from sfu.plane.api import Address
from sfu.plane.context import PlaneContext
from sfu.plane.drops import DropReason
from sfu.plane.encoding import Encoding
from sfu.plane.feedback import Feedback
from sfu.plane.peer import PlanePeer
from sfu.plane.transport_feedback import TransportFeedbacks
from shared.errors import BadPacket
from shared.rtc import rtp
from shared.rtc.demux import is_rtcp


class MediaEntry:
    """Takes SRTP and SRTCP from the peers, which are found by their addresses."""

    def __init__(self, context: PlaneContext) -> None:
        self._context = context
        self._transport = TransportFeedbacks(context)
        self._feedback = Feedback(context, self._transport)
        self.addresses: dict[Address, tuple[PlanePeer, KnownAddress]] = {}

    def add_address(self, peer: PlanePeer, address: Address, *, nominated: bool, now: float) -> None:
        """An authentic check of the peer came from there."""
        owner, known = self.addresses.get(address, (None, None))
        if owner is not None and known is not None and owner is not peer:
            if known.is_owned(now=now):
                return
            owner.addresses.remove(known)
            owner.refresh(now=now)
            known = None
        if known is None:
            known = KnownAddress(address, now)
            self.addresses[address] = peer, known
            if (evicted := peer.addresses.add(known)) is not None:
                del self.addresses[evicted.address]
        known.seen_at = now
        if nominated:
            peer.addresses.nominated = known

    def heard_from(self, peer: PlanePeer, address: Address, *, now: float) -> None:
        """Something that can't be forged came from there, where the peer's keys have said so."""
        owner, known = self.addresses[address]
        if owner is peer and peer.addresses.heard(known, now=now):
            peer.refresh(now=now)

    def handle(self, datagram: bytes, address: Address, *, now: float) -> None:
        """As `sfu.plane.api.Plane.handle`."""
        context = self._context
        context.packets_in += 1
        context.bytes_in += len(datagram)
        peer, _ = self.addresses.get(address, (None, None))
        if peer is None:
            context.drops[DropReason.UNKNOWN_ADDRESS] += 1
        elif len(datagram) < rtp.HEADER_LENGTH:
            context.drops[DropReason.BAD_RTP] += 1
        elif is_rtcp(datagram):
            ssrc = int.from_bytes(datagram[4:8], "big")
            compound = peer.unprotect(datagram, ssrc=ssrc, rtcp=True)
            if compound is not None:
                self.heard_from(peer, address, now=now)
                self._feedback.handle(peer, compound, now=now)
        else:
            ssrc = int.from_bytes(datagram[8:12], "big")
            packet = peer.unprotect(datagram, ssrc=ssrc, rtcp=False)
            if packet is not None:
                self.heard_from(peer, address, now=now)
                self._rtp(peer, packet, now=now)

    def _rtp(self, peer: PlanePeer, packet: bytes, *, now: float) -> None:
        try:
            header = rtp.parse(packet)
        except BadPacket:
            self._context.drops[DropReason.BAD_RTP] += 1
            return
        self._feedback.heard(peer, now=now)
        self._transport.arrived(peer, packet, header, now=now)
        route = peer.routes.get(header.ssrc) or self._bind(peer, packet, header, now=now)
        if route is None:
            self._context.drops[DropReason.UNKNOWN_SSRC] += 1
            return
        encoding, is_rtx = route
        take = encoding.take_rtx if is_rtx else encoding.take
        media = take(packet, header, now=now)
        if media is not None:
            encoding.producer.deliver(media, now=now)

    def _bind(
        self, peer: PlanePeer, packet: bytes, header: rtp.RtpHeader, *, now: float
    ) -> tuple[Encoding, bool] | None:
        """Find the layer of an SSRC that is new."""
        if header.ssrc in peer.routes:
            return None
        # An id means the same URI in every m-line of a bundle (RFC 8843 section 9.4): the maps can be merged.
        uris = {number: uri for producer in peer.producers.values() for number, uri in producer.spec.extensions.items()}
        seen = rtp.extensions(packet, header)
        named = {uri: seen[number] for number, uri in uris.items() if number in seen}
        binding = bind(
            Sight(
                ssrc=header.ssrc,
                payload_type=header.payload_type,
                mid=_text(named.get(rtp.MID_URI)),
                rid=_text(named.get(rtp.RID_URI)),
                repaired_rid=_text(named.get(rtp.REPAIRED_RID_URI)),
            ),
            [producer.candidate for producer in peer.producers.values()],
        )
        if binding.producer is None:
            return None
        producer = peer.producers[binding.producer]
        encoding, replaced = producer.bind(binding.rid, header.ssrc, is_rtx=binding.is_rtx, now=now)
        if replaced is not None:
            peer.replace_route(replaced)
        peer.routes[header.ssrc] = route = (encoding, binding.is_rtx)
        self._feedback.new_ssrc(peer, now=now)
        return route


def _text(value: bytes | None) -> str:
    """A MID or RID; anything but ASCII names nothing of ours."""
    return value.decode("ascii", "replace") if value is not None else ""
