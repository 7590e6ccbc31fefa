"""One published track of the reference plane: its layers and its consumers."""

from __future__ import annotations

from sfu.core.media.binder import BindCandidate
from sfu.core.media.delivery import Delivery
from sfu.core.media.layers import LayerFact, choose_layer
from sfu.plane.api import (
    SILENT_AFTER_S,
    ConsumerSpec,
    ProducerEnded,
    ProducerFlowing,
    ProducerResumed,
    ProducerSilent,
    ProducerSnapshot,
    ProducerSpec,
)
from sfu.plane.consumer import Consumer
from sfu.plane.context import PlaneContext
from sfu.plane.encoding import Encoding
from sfu.plane.packet import ExtensionPlan, MediaPacket
from sfu.plane.peer import PlanePeer
from shared.rtc import rtp

WATCH_S = 0.2
"""How often layers and silence are looked at: well under what a viewer notices."""

KEPT_RETIRED = 16
"""Encodings replaced by a new SSRC whose packets may still be asked for."""


class Producer:
    """Delivers each new packet to its active consumers: those not paused, whose peers can be sent to."""

    __slots__ = (
        "_active",
        "_context",
        "_plans",
        "_retired",
        "candidate",
        "closed",
        "consumers",
        "encodings",
        "ended",
        "flowing",
        "last_media",
        "media_codecs",
        "peer",
        "rtx_codecs",
        "silent",
        "spec",
    )

    def __init__(self, spec: ProducerSpec, peer: PlanePeer, context: PlaneContext, *, now: float) -> None:
        self.spec = spec
        self.peer = peer
        self._context = context
        self.media_codecs = {codec.payload_type: codec for codec in spec.codecs}
        self.rtx_codecs = {codec.rtx_payload_type: codec for codec in spec.codecs if codec.rtx_payload_type is not None}
        self.candidate = _candidate(spec, set(self.media_codecs), set(self.rtx_codecs))
        self.encodings = {rid: self._make_encoding(rid) for rid in spec.rids or ("",)}
        self.consumers: dict[int, Consumer] = {}
        self._active: list[Consumer] = []
        self._retired: list[Encoding] = []
        self._plans: dict[tuple[tuple[str, int], ...], ExtensionPlan] = {}
        self.flowing = self.silent = self.ended = self.closed = False
        self.last_media: float | None = None
        context.timers.add(now + WATCH_S, self._watch)

    def _make_encoding(self, rid: str) -> Encoding:
        lowest = not self.spec.rids or rid == self.spec.rids[0]
        return Encoding(self, rid, lowest=lowest, context=self._context)

    # -- layers

    def bind(self, rid: str, ssrc: int, *, is_rtx: bool, now: float) -> tuple[Encoding, int | None]:
        """Give an SSRC to a layer; also returns the SSRC that it takes the place of.

        A layer that starts again with another SSRC gets a new `Encoding`, with numbers of its own.
        """
        encoding = self.encodings.get(rid)
        if encoding is None:
            encoding = self.encodings[rid] = self._make_encoding(rid)
        if is_rtx:
            replaced, encoding.rtx_ssrc = encoding.rtx_ssrc, ssrc
            encoding.rtx_stats = None
            return encoding, replaced
        replaced = encoding.ssrc
        if replaced is not None:
            old, rtx_ssrc, encoding.ssrc = encoding, encoding.rtx_ssrc, None
            encoding = self.encodings[rid] = self._make_encoding(rid)
            encoding.rtx_ssrc = rtx_ssrc
            encoding.sets = old.sets.inherited()
            if rtx_ssrc is not None:
                self.peer.routes[rtx_ssrc] = (encoding, True)
            self._retire(old)
        encoding.ssrc = ssrc
        for consumer in self.consumers.values():
            consumer.choose(now=now, ask=False)
        return encoding, replaced

    def _retire(self, encoding: Encoding) -> None:
        """Keep a replaced encoding for as long as a consumer may be asked for its packets, but not too many of them."""
        self._retired.append(encoding)
        consumers = self.consumers.values()
        self._retired = [old for old in self._retired if any(consumer.needs(old) for consumer in consumers)]
        if len(self._retired) > KEPT_RETIRED:
            oldest = self._retired.pop(0)
            oldest.forget()
            for consumer in consumers:
                consumer.let_go(oldest)

    def target(self, preferred: str | None) -> Encoding | None:
        """The layer that a consumer with this preference should get; None before anything flows."""
        if len(self.encodings) == 1:
            return next(iter(self.encodings.values()))
        facts = [LayerFact(rid, encoding.last_media) for rid, encoding in self.encodings.items()]
        choice = choose_layer(facts, preferred=preferred)
        return self.encodings[choice.rid] if choice.rid is not None else None

    def request_keyframes(self, *, now: float) -> None:
        """Ask for a key frame of each layer in use, or of all layers where no consumer has one yet."""
        wanted = {id(encoding): encoding for c in self.consumers.values() if (encoding := c.target) is not None}
        for encoding in wanted.values() or self.encodings.values():
            encoding.request_keyframe(now=now)

    # -- consumers

    def add_consumer(self, spec: ConsumerSpec, peer: PlanePeer, *, now: float) -> Consumer:
        extensions = dict(spec.extensions)
        if self.spec.kind == "video" and not spec.has_rtx:
            # It is sent again the same to the byte, and no number of the transport is used twice.
            extensions.pop(rtp.TRANSPORT_CC_URI, None)
        key = tuple(sorted(extensions.items()))
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = ExtensionPlan(self.spec.extensions, extensions)
        if plan.sequenced and peer.delivery is None:
            peer.delivery = Delivery()
        consumer = self.consumers[spec.consumer] = Consumer(spec, self, peer, plan, self._context)
        self.refresh_active()
        consumer.choose(now=now)
        return consumer

    def remove_consumer(self, consumer: int) -> None:
        self.consumers.pop(consumer, None)
        self.refresh_active()

    def refresh_active(self) -> None:
        self._active = [c for c in self.consumers.values() if not c.paused and c.peer.ready]

    # -- media

    def deliver(self, packet: MediaPacket, *, now: float) -> None:
        self.last_media = now
        if not self.flowing:
            self._begin(packet, now=now)
        if self.silent:
            self.silent = False
            self._context.events.append(ProducerResumed(self.spec.producer))
        if packet.keyframe_start and len(self.encodings) > 1:
            # A layer that has just begun to flow starts with a key frame: taking it now saves asking for another.
            for consumer in self.consumers.values():
                consumer.choose(now=now, ask=False)
        for consumer in self._active:
            consumer.forward(packet, now)

    def _begin(self, packet: MediaPacket, *, now: float) -> None:
        if packet.keyframe_start or packet.encoding.opaque:
            self.flowing = True
            self._context.events.append(ProducerFlowing(self.spec.producer))
        else:
            packet.encoding.request_keyframe(now=now)

    def bye(self, ssrc: int) -> None:
        for encoding in self.encodings.values():
            encoding.ended = encoding.ended or encoding.ssrc == ssrc
        bound = [encoding for encoding in self.encodings.values() if encoding.ssrc is not None]
        if bound and not self.ended and all(encoding.ended for encoding in bound):
            self.ended = True
            self._context.events.append(ProducerEnded(self.spec.producer))

    def _watch(self, now: float) -> float | None:
        if self.closed:
            return None
        quiet_s = now - self.last_media if self.last_media is not None else 0.0
        if self.flowing and not self.silent and quiet_s >= SILENT_AFTER_S:
            self.silent = True
            self._context.events.append(ProducerSilent(self.spec.producer))
        for consumer in self.consumers.values():
            consumer.choose(now=now)
        return now + WATCH_S

    def snapshot(self) -> ProducerSnapshot:
        return ProducerSnapshot(
            producer=self.spec.producer,
            peer=self.spec.peer,
            kind=self.spec.kind,
            flowing=self.flowing and not self.silent,
            encodings=tuple(encoding.snapshot() for encoding in self.encodings.values() if encoding.stats),
            consumers=len(self.consumers),
        )


def _candidate(spec: ProducerSpec, media_types: set[int], rtx_types: set[int]) -> BindCandidate:
    ssrcs: dict[int, tuple[str, bool]] = {}
    for known in spec.ssrcs:
        ssrcs[known.ssrc] = (known.rid, False)
        if known.rtx_ssrc is not None:
            ssrcs[known.rtx_ssrc] = (known.rid, True)
    return BindCandidate(
        producer=spec.producer,
        mid=spec.mid,
        rids=spec.rids,
        media_types=frozenset(media_types),
        rtx_types=frozenset(rtx_types),
        ssrcs=ssrcs,
    )
