"""The readable plane: everything `sfu.plane.api.Plane` promises, in Python, one packet at a time."""

from __future__ import annotations

import random

from sfu.plane.api import Address, ConsumerSpec, Event, PlaneSnapshot, PlaneTotals, ProducerSpec
from sfu.plane.consumer import Consumer
from sfu.plane.context import PlaneContext, Send
from sfu.plane.entry import MediaEntry
from sfu.plane.peer import PlanePeer
from sfu.plane.producer import Producer
from shared.rtc import rtp
from shared.rtc.srtp import SrtpKeys


class ReferencePlane:
    """See `sfu.plane.api.Plane` for the promises; `send` sends one datagram and never raises."""

    def __init__(self, *, send: Send, rng: random.Random | None = None) -> None:
        # Sequence numbers and SSRCs must not be guessable from outside, hence not the default generator.
        self._context = PlaneContext(send=send, rng=rng or random.SystemRandom())
        self._entry = MediaEntry(self._context)
        self._peers: dict[int, PlanePeer] = {}
        self._producers: dict[int, Producer] = {}
        self._consumers: dict[int, Consumer] = {}

    # -- peers

    def add_peer(self, peer: int) -> None:
        if peer in self._peers:
            raise ValueError(f"peer {peer} exists")
        self._peers[peer] = PlanePeer(peer, self._context)

    def set_keys(self, peer: int, keys: SrtpKeys, *, address: Address, now: float) -> None:
        if (known := self._peers.get(peer)) is not None:
            known.set_keys(keys)
            self._entry.add_address(known, address, nominated=False, now=now)
            self._entry.heard_from(known, address, now=now)
            known.refresh(now=now)

    def add_address(self, peer: int, address: Address, *, nominated: bool, now: float) -> None:
        if (known := self._peers.get(peer)) is not None:
            self._entry.add_address(known, address, nominated=nominated, now=now)

    def peer_at(self, address: Address) -> int | None:
        found = self._entry.addresses.get(address)
        return found[0].peer if found is not None else None

    def address_of(self, peer: int) -> Address | None:
        known = self._peers.get(peer)
        return known.address if known is not None else None

    def remove_peer(self, peer: int) -> None:
        known = self._peers.pop(peer, None)
        if known is None:
            return
        known.closed = True
        for producer in list(known.producers):
            self.close_producer(producer)
        for consumer in list(known.consumers):
            self.close_consumer(consumer)
        for one in known.addresses.known:
            del self._entry.addresses[one.address]

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
        # The SSRCs may be used again: browsers keep a sender's SSRC for its next track.
        routes = known.peer.routes
        for ssrc in [s for s, route in routes.items() if route is not None and route[0].producer is known]:
            del routes[ssrc]

    def consume(self, spec: ConsumerSpec, *, now: float) -> bool:
        if spec.consumer in self._consumers:
            raise ValueError(f"consumer {spec.consumer} exists")
        peer, producer = self._peers.get(spec.peer), self._producers.get(spec.producer)
        if peer is None or producer is None:
            return False
        for ssrc in spec.ssrcs:
            if peer.has_used(ssrc) or spec.ssrcs.count(ssrc) > 1:
                raise ValueError(f"SSRC {ssrc} has been used towards peer {spec.peer}")
        consumer = producer.add_consumer(spec, peer, now=now)
        peer.claim(spec.ssrcs)
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
        for ssrc in known.spec.ssrcs:
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

    # -- datagrams, time and telling

    def handle(self, datagram: bytes, address: Address, *, now: float) -> None:
        self._entry.handle(datagram, address, now=now)

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
