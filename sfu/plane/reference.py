"""The readable plane: everything `sfu.plane.api.Plane` promises, in Python, one packet at a time."""

from __future__ import annotations

import random

from sfu.core.media.binder import Sight, bind
from sfu.plane.api import Address, ConsumerSpec, Event, PlaneSnapshot, PlaneTotals, ProducerSpec
from sfu.plane.consumer import Consumer
from sfu.plane.context import PlaneContext, Send
from sfu.plane.drops import DropReason
from sfu.plane.encoding import Encoding
from sfu.plane.feedback import Feedback
from sfu.plane.peer import PlanePeer
from sfu.plane.producer import Producer
from sfu.plane.transport_feedback import TransportFeedbacks
from shared.errors import BadPacket
from shared.rtc import rtp
from shared.rtc.demux import is_rtcp
from shared.rtc.srtp import SrtpKeys


class ReferencePlane:
    """See `sfu.plane.api.Plane` for the promises; `send` sends one datagram and never raises."""

    def __init__(self, *, send: Send, rng: random.Random | None = None) -> None:
        # Sequence numbers and SSRCs must not be guessable from outside, hence not the default generator.
        self._context = PlaneContext(send=send, rng=rng or random.SystemRandom())
        self._transport = TransportFeedbacks(self._context)
        self._feedback = Feedback(self._context, self._transport)
        self._peers: dict[int, PlanePeer] = {}
        self._by_address: dict[Address, PlanePeer] = {}
        self._producers: dict[int, Producer] = {}
        self._consumers: dict[int, Consumer] = {}

    # -- peers

    def add_peer(self, peer: int) -> None:
        if peer in self._peers:
            raise ValueError(f"peer {peer} exists")
        self._peers[peer] = PlanePeer(peer, self._context)

    def set_keys(self, peer: int, keys: SrtpKeys, *, now: float) -> None:
        if (known := self._peers.get(peer)) is not None:
            known.set_keys(keys)
            self._refresh(known, now=now)

    def set_address(self, peer: int, address: Address, *, now: float) -> None:
        known = self._peers.get(peer)
        if known is None or known.address == address:
            return
        if known.address is not None:
            del self._by_address[known.address]
        if (previous := self._by_address.get(address)) is not None:
            previous.address = None
            self._refresh(previous, now=now)
        known.address = address
        self._by_address[address] = known
        self._refresh(known, now=now)

    def _refresh(self, peer: PlanePeer, *, now: float) -> None:
        """Whether media can be sent to the peer may have changed."""
        for consumer in peer.consumers.values():
            self._producers[consumer.spec.producer].refresh_active()
            consumer.choose(now=now)

    def remove_peer(self, peer: int) -> None:
        known = self._peers.pop(peer, None)
        if known is None:
            return
        known.closed = True
        for producer in list(known.producers):
            self.close_producer(producer)
        for consumer in list(known.consumers):
            self.close_consumer(consumer)
        if known.address is not None:
            del self._by_address[known.address]

    # -- tracks

    def produce(self, spec: ProducerSpec, *, now: float) -> bool:
        if spec.producer in self._producers:
            raise ValueError(f"producer {spec.producer} exists")
        peer = self._peers.get(spec.peer)
        if peer is None:
            return False
        producer = Producer(spec, peer, self._context, now=now)
        self._producers[spec.producer] = peer.producers[spec.producer] = producer
        for identifier, uri in spec.extensions.items():
            if uri == rtp.TRANSPORT_CC_URI:
                peer.transport_cc = identifier
        return True

    def close_producer(self, producer: int) -> None:
        known = self._producers.pop(producer, None)
        if known is None:
            return
        known.closed = True
        known.peer.producers.pop(producer, None)
        for consumer in list(known.consumers):
            self.close_consumer(consumer)
        # The SSRCs may be used again: browsers keep a sender's SSRC when its track is published anew.
        routes = known.peer.routes
        for ssrc in [s for s, route in routes.items() if route is not None and route[0].producer is known]:
            del routes[ssrc]

    def consume(self, spec: ConsumerSpec, *, now: float) -> bool:
        if spec.consumer in self._consumers:
            raise ValueError(f"consumer {spec.consumer} exists")
        peer, producer = self._peers.get(spec.peer), self._producers.get(spec.producer)
        if peer is None or producer is None:
            return False
        for ssrc in (spec.ssrc,) if spec.rtx_ssrc is None else (spec.ssrc, spec.rtx_ssrc):
            if not peer.claim(ssrc):
                raise ValueError(f"SSRC {ssrc} has been used towards peer {spec.peer}")
        consumer = producer.add_consumer(spec, peer, now=now)
        self._consumers[spec.consumer] = peer.consumers[spec.consumer] = consumer
        peer.consumers_by_ssrc[spec.ssrc] = consumer
        return True

    def close_consumer(self, consumer: int) -> None:
        known = self._consumers.pop(consumer, None)
        if known is None:
            return
        known.closed = True
        known.peer.consumers.pop(consumer, None)
        known.peer.consumers_by_ssrc.pop(known.spec.ssrc, None)
        known.producer.remove_consumer(consumer)
        for ssrc in known.ssrcs:
            known.peer.release(ssrc)

    def set_layer(self, consumer: int, rid: str | None, *, now: float) -> None:
        if (known := self._consumers.get(consumer)) is not None:
            known.set_layer(rid, now=now)

    def pause(self, consumer: int, paused: bool, *, now: float) -> None:
        known = self._consumers.get(consumer)
        if known is None or known.paused == paused:
            return
        known.paused = paused
        known.producer.refresh_active()
        known.restart(now=now)

    def request_keyframe(self, producer: int, *, now: float) -> None:
        if (known := self._producers.get(producer)) is not None:
            known.request_keyframes(now=now)

    def follow_delivery(self, peer: int, wanted: bool) -> None:
        if (known := self._peers.get(peer)) is not None:
            known.follows_delivery = wanted

    # -- datagrams

    def handle(self, datagram: bytes, address: Address, *, now: float) -> None:
        context = self._context
        context.packets_in += 1
        context.bytes_in += len(datagram)
        peer = self._by_address.get(address)
        if peer is None:
            context.drops[DropReason.UNKNOWN_ADDRESS] += 1
        elif len(datagram) < rtp.HEADER_LENGTH:
            context.drops[DropReason.BAD_RTP] += 1
        elif is_rtcp(datagram):
            ssrc = int.from_bytes(datagram[4:8], "big")
            compound = peer.unprotect(datagram, ssrc=ssrc, rtcp=True)
            if compound is not None:
                self._feedback.handle(peer, compound, now=now)
        else:
            ssrc = int.from_bytes(datagram[8:12], "big")
            packet = peer.unprotect(datagram, ssrc=ssrc, rtcp=False)
            if packet is not None:
                self._handle_rtp(peer, packet, now=now)

    def _handle_rtp(self, peer: PlanePeer, packet: bytes, *, now: float) -> None:
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
        producer = self._producers[binding.producer]
        encoding, replaced = producer.bind(binding.rid, header.ssrc, is_rtx=binding.is_rtx, now=now)
        if replaced is not None:
            peer.routes[replaced] = None
        peer.routes[header.ssrc] = route = (encoding, binding.is_rtx)
        self._feedback.new_ssrc(peer, now=now)
        return route

    # -- time and telling

    def tick(self, *, now: float) -> None:
        self._context.timers.run(now)

    def next_deadline(self) -> float | None:
        return self._context.timers.next_deadline()

    def events(self) -> list[Event]:
        events, self._context.events = self._context.events, []
        return events

    def snapshot(self) -> PlaneSnapshot:
        return PlaneSnapshot(
            totals=self._totals(),
            peers=tuple(peer.snapshot() for peer in self._peers.values()),
            producers=tuple(producer.snapshot() for producer in self._producers.values()),
            consumers=tuple(consumer.snapshot() for consumer in self._consumers.values()),
        )

    def _totals(self) -> PlaneTotals:
        context = self._context
        return PlaneTotals(
            packets_in=context.packets_in,
            bytes_in=context.bytes_in,
            packets_out=context.packets_out,
            bytes_out=context.bytes_out,
            forwarded=context.forwarded,
            forwarded_bytes=context.forwarded_bytes,
            nacks_sent=context.nacks_sent,
            nacks_received=context.nacks_received,
            plis_sent=context.plis_sent,
            plis_received=context.plis_received,
            rtx_received=context.rtx_received,
            resent=context.resent,
            feedbacks_sent=context.feedbacks_sent,
            feedbacks_received=context.feedbacks_received,
            drops={reason.value: count for reason, count in context.drops.items()},
        )


def _text(value: bytes | None) -> str:
    """A MID or RID; anything but ASCII names nothing of ours."""
    return value.decode("ascii", "replace") if value is not None else ""
