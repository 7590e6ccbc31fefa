"""Both planes get the same datagrams, calls and times, and must send the same bytes and tell the same facts."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfu.plane.api import ConsumerSpec, PlaneSnapshot
from shared.rtc import rtcp, rtp, transport_cc
from shared.rtc.demux import is_rtcp
from shared.rtc.srtp import SrtpProfile
from tests.budget import examples
from tests.fakes.h264_stream import pps, sps, stap
from tests.fakes.plane_rig import H264, Rig, vp8_payload

RIDS = ("l", "m", "h")
STEPS = 400
"""In one history; about half of them carry a media packet."""


@dataclass
class Stream:
    """One SSRC of the publisher."""

    ssrc: int
    rid: str
    sequence: int
    timestamp: int
    picture: int
    kind: str = "video"
    heard: bool = False
    """Any of its packets has arrived."""


class Twins:
    """The reference and the compiled plane with the same keys, chance and history. `rng` writes the history."""

    def __init__(self, seed: int, profile: SrtpProfile, *, viewers: int = 2) -> None:
        self.rng = random.Random(seed)
        self.viewers = range(2, 2 + viewers)
        """Peers that subscribe; the first of them publishes too."""
        self.rigs = [Rig(seed=seed, kind=kind, profile=profile) for kind in ("reference", "compiled")]
        self.consumers = 0
        self.transport = self.rng.randrange(65536)
        self.streams: list[Stream] = []
        for rig in self.rigs:
            for peer in (1, *self.viewers):
                rig.peer(peer)
            rig.produce(1, 1, rids=RIDS)
            rig.produce(2, 1, kind="audio")
            rig.produce(3, 2)
            rig.produce(4, 1, codec=H264, parameter_sets=(sps(0), pps(0)) if seed % 2 else ())
        for number, rid in enumerate(RIDS):
            self.add_stream(100 * (number + 1), rid)
        self.streams.append(Stream(900, "", self.rng.randrange(65536), self.rng.getrandbits(32), 0, "audio"))
        self.pictures = Stream(700, "", self.rng.randrange(65536), self.rng.getrandbits(32), 0, "pictures")
        for peer in self.viewers:
            self.consume(peer, 1)
            self.consume(peer, 2)
            self.consume(peer, 4)

    def add_stream(self, ssrc: int, rid: str) -> None:
        rng = self.rng
        start = rng.choice((rng.randrange(65536), 65535 - rng.randrange(6)))
        self.streams.append(Stream(ssrc, rid, start, rng.getrandbits(32), rng.randrange(32768)))

    def consume(self, peer: int, producer: int) -> None:
        self.consumers += 1
        rtx = self.rng.random() < 0.7
        transport_cc = self.rng.choice((None, 8, 8, 8, 200))
        codec = {2: "opus", 4: "H264"}.get(producer, "VP8")
        for rig in self.rigs:
            rig.consume(self.consumers, peer, producer, codec=codec, rtx=rtx, transport_cc=transport_cc)
            rig.plane.follow_delivery(peer, self.consumers % 2 == 1)

    def each(self, call: str, *arguments: object, **named: object) -> None:
        for rig in self.rigs:
            getattr(rig, call)(*arguments, **named)

    # -- one step of the history

    def step(self) -> None:
        rng = self.rng
        actions = {
            self.media: 50,
            self.h264: 20,
            self.wait: 25,
            self.nack: 6,
            self.picture_loss: 3,
            self.layer: 3,
            self.pause: 2,
            self.reports: 4,
            self.transport_feedback: 6,
            self.reference_time: 2,
            self.rtx: 4,
            self.strange: 4,
            self.new_ssrc: 1,
            self.check_from: 2,
            self.goes_elsewhere: 1,
            self.joins: 1,
            self.leaves: 1,
        }
        rng.choices(list(actions), weights=list(actions.values()))[0]()
        for rig in self.rigs:
            rig.collect()

    def media(self) -> None:
        rng, stream = self.rng, self.rng.choice(self.streams)
        step = rng.choices((1, 0, 2, 3, -1, -5, 300, -700), weights=(80, 2, 5, 2, 4, 3, 1, 1))[0]
        stream.sequence = (stream.sequence + step) & 0xFFFF if step > 0 else stream.sequence
        sequence = (stream.sequence + min(step, 0)) & 0xFFFF
        if rng.random() < 0.3:
            stream.timestamp += 3000
            stream.picture += 1
        self.send(stream, sequence)

    def send(self, stream: Stream, sequence: int) -> None:
        """A packet; the first ones of a stream may be lost, so that its numbers have wrapped when it is first heard."""
        lost = not stream.heard and self.rng.random() < 0.8
        stream.heard = stream.heard or not lost
        for rig in self.rigs:
            rig.loses = lost
        self.packet(stream, sequence)
        for rig in self.rigs:
            rig.loses = False

    def packet(self, stream: Stream, sequence: int) -> None:
        rng = self.rng
        body = rng.randbytes(rng.randrange(1, 60))
        extra = self.transport_number()
        extra += ((13, b"\x02"),) if rng.random() < 0.2 else ()
        if rng.random() < 0.1:
            extra += ((rng.choice((1, 2, 3, 9, 14, 20, 200)), rng.randbytes(rng.randrange(1, 30))),)
        what = {"ssrc": stream.ssrc, "sequence": sequence, "timestamp": stream.timestamp, "extra": extra}
        if stream.kind == "audio":
            self.each("rtp", 1, payload=body, payload_type=111, mid="2", marker=rng.random() < 0.1, **what)
            return
        payload = vp8_payload(
            key=rng.random() < 0.15,
            start=rng.random() < 0.4,
            picture_id=stream.picture & 0x7FFF,
            tl0=stream.picture,
            body=body,
        )
        kind = rng.random()
        if kind < 0.03:
            payload = b""
        elif kind < 0.06:
            payload = rng.randbytes(rng.randrange(1, 6))
        padding = rng.randrange(1, 20) if kind < 0.08 else 0
        payload_type = 34 if rng.random() < 0.01 else 96
        self.each(
            "rtp",
            1,
            payload=payload,
            payload_type=payload_type,
            mid="1",
            rid=stream.rid,
            marker=rng.random() < 0.3,
            padding=padding,
            **what,
        )

    def h264(self) -> None:
        """Parameter sets, pictures that need them, and what only looks so; in order, late, lost or under a new SSRC."""
        rng, stream = self.rng, self.pictures
        step = rng.choices((1, 2, -1, -3, 0), weights=(80, 5, 4, 3, 2))[0]
        sequence = stream.sequence = (stream.sequence + max(step, 0)) & 0xFFFF
        if rng.random() < 0.5:
            stream.timestamp += 3000
        if rng.random() < 0.01:
            stream.ssrc += 1
        units = [rng.choice((sps, pps))(rng.randrange(3), rng.randbytes(rng.choice((0, 5, 400)))) for _ in range(3)]
        whole = stap(*units[: rng.randrange(1, 4)])
        payload = rng.choices(
            (
                b"\x65idr",
                b"\x7c\x85idr",
                b"\x61x",
                units[0],
                whole,
                whole[: rng.randrange(len(whole))],
                b"\x7c\x87",
                b"",
            ),
            weights=(8, 8, 20, 4, 6, 2, 1, 1),
        )[0]
        if rng.random() < 0.05:
            payload = bytes((rng.choice((0x65, 0x67, 0x68, 0x78, 0x7C)),)) + rng.randbytes(rng.randrange(9))
        self.send_picture(stream, (sequence + min(step, 0)) & 0xFFFF, payload)

    def send_picture(self, stream: Stream, sequence: int, payload: bytes) -> None:
        what = {"ssrc": stream.ssrc, "sequence": sequence, "timestamp": stream.timestamp, "payload": payload}
        padding, marker = self.rng.choice((0, 0, 0, 5)), self.rng.random() < 0.3
        extra = ((13, b"\x02"),) if self.rng.random() < 0.2 else ()
        extra += self.transport_number()
        self.each("rtp", 1, payload_type=98, mid="4", padding=padding, marker=marker, extra=extra, **what)

    def rtx(self) -> None:
        rng = self.rng
        stream = rng.choice([s for s in self.streams if s.kind == "video"])
        original = (stream.sequence - rng.randrange(8)) & 0xFFFF
        payload = original.to_bytes(2, "big") + vp8_payload(picture_id=stream.picture & 0x7FFF, tl0=stream.picture)
        self.each(
            "rtp",
            1,
            ssrc=10_000 + stream.ssrc,
            sequence=stream.sequence,
            timestamp=stream.timestamp,
            payload=payload if rng.random() < 0.8 else b"",
            payload_type=97,
            mid="1",
            repaired_rid=stream.rid,
            padding=rng.choice((0, 0, 9)),
            extra=self.transport_number(),
        )

    def transport_number(self) -> tuple[tuple[int, bytes], ...]:
        """The publisher's transport-wide sequence number: mostly the next, with gaps, late ones, repeats and jumps."""
        rng = self.rng
        if rng.random() < 0.05:
            return ((3, rng.randbytes(rng.choice((1, 3)))),) if rng.random() < 0.2 else ()
        weights = (70, 8, 4, 4, 4, 2, 2, 1, 1)
        step = rng.choices((1, 2, 9, 0, -1, -7, 200, rng.randrange(65536), -2100), weights=weights)[0]
        number = (self.transport + step) & 0xFFFF
        if step > 0:
            self.transport = number
        return ((3, number.to_bytes(2, "big")),)

    def transport_feedback(self) -> None:
        """A viewer tells what came: as Chromium does, or with numbers and times that can't be."""
        rng, peer = self.rng, self.rng.choice(self.viewers)
        snapshot = next(p for p in self.rigs[0].plane.snapshot().peers if p.peer == peer)
        sent = snapshot.delivery.sent if snapshot.delivery else 0
        base = sent - rng.choice((1, 5, 20, 60, 300, 3000)) + rng.choice((0, 0, 0, 40, -70_000))
        ticks = int(self.rigs[0].now * 4000) + rng.choice((0, 0, 0, 1 << 31, -100_000))
        arrivals: list[int | None] = []
        for _ in range(rng.choice((1, 5, 20, 60, 300))):
            ticks += rng.choice((0, 1, 4, 40, 300, -3))
            arrivals.append(ticks if rng.random() < 0.9 else None)
        if rng.random() < 0.3:
            arrivals[rng.randrange(len(arrivals)) :] = [None] * rng.choice((10, 400, 7000))
        arrivals.append(ticks)
        packet = transport_cc.build(sender=1, media=2, base=base, count=rng.randrange(256), arrivals=arrivals)
        if rng.random() < 0.2:
            broken = bytearray(packet)
            broken[rng.randrange(12, len(broken))] ^= 1 << rng.randrange(8)
            packet = bytes(broken)
        # Chromium pads most of them.
        padded = bytes((packet[0] | 0x20, 205)) + (len(packet) // 4).to_bytes(2, "big") + packet[4:] + b"\0\0\0\4"
        self.each("rtcp", peer, padded if rng.random() < 0.8 else packet)

    def wait(self) -> None:
        for rig in self.rigs:
            rig.run_until(rig.now)
        until = self.rigs[0].now + self.rng.choice((0.001, 0.01, 0.033, 0.1, 0.7))
        for rig in self.rigs:
            rig.run_until(until)

    def nack(self) -> None:
        rng = self.rng
        peer = rng.choice(self.viewers)
        seen = [entry[0] for entry in self.rigs[0].sent[peer][-200:]]
        if not seen:
            return
        asked = rng.choice(seen)
        sequences = sorted({(asked.sequence + rng.randrange(-3, 20)) & 0xFFFF for _ in range(rng.randrange(1, 6))})
        self.each("rtcp", peer, rtcp.nack(sender=1, media=asked.ssrc, sequences=sequences))

    def picture_loss(self) -> None:
        consumer = self.rng.randrange(1, self.consumers + 2)
        compound = rtcp.picture_loss(sender=1, media=5000 + consumer)
        if self.rng.random() < 0.3:
            compound = rtcp.full_intra_request(sender=1, media=5000 + consumer, command=1)
        self.each("rtcp", self.rng.choice(self.viewers), compound)

    def layer(self) -> None:
        consumer, rid = self.rng.randrange(1, self.consumers + 2), self.rng.choice((*RIDS, None, "?"))
        for rig in self.rigs:
            rig.plane.set_layer(consumer, rid, now=rig.now)

    def pause(self) -> None:
        consumer, paused = self.rng.randrange(1, self.consumers + 2), self.rng.random() < 0.4
        for rig in self.rigs:
            rig.plane.pause(consumer, paused, now=rig.now)

    def reports(self) -> None:
        rng, stream = self.rng, self.rng.choice(self.streams)
        ntp = (3_900_000_000 << 32) + int(self.rigs[0].now * 2**32) + rng.randrange(1 << 28)
        report = rtcp.SenderReport(
            ssrc=stream.ssrc, ntp=ntp, rtp_timestamp=stream.timestamp & 0xFFFFFFFF, packets=1, octets=1
        )
        self.each("rtcp", 1, rtcp.sender_report(report))
        for peer in self.viewers:
            sent = [p for p in self.rigs[0].feedback[peer] if isinstance(p, rtcp.SenderReport)]
            if sent and rng.random() < 0.5:
                block = rtcp.ReportBlock(
                    ssrc=sent[-1].ssrc,
                    fraction_lost=rng.randrange(256),
                    lost=1,
                    highest=1,
                    jitter=0,
                    last_sr=sent[-1].ntp >> 16 & 0xFFFFFFFF,
                    delay_since_sr=rng.randrange(6000),
                )
                self.each("rtcp", peer, rtcp.receiver_report(1, [block]))

    def reference_time(self) -> None:
        """A viewer tells its clock, now and then twice in a compound or among blocks of other kinds."""
        rng = self.rng
        one = rtcp.reference_time(sender=rng.getrandbits(32), ntp=rng.getrandbits(64))
        words = rng.randrange(4)
        other = bytes((rng.randrange(8), 0, 0, words)) + rng.randbytes(4 * words)
        mixed = bytes((0x80, rtcp.XR, 0, 5 + words)) + one[4:8] + rng.choice((other + one[8:], one[8:] + other))
        self.each("rtcp", rng.choice(self.viewers), rng.choice((one, mixed, one + mixed, mixed[:-4])))

    def strange(self) -> None:
        """What no honest peer sends: noise, bits flipped, broken compounds, another's address, a BYE."""
        rng = self.rng
        peer = rng.choice((1, *self.viewers))
        kind = rng.randrange(5)
        if kind == 0:
            noise = bytes((0x80, rng.randrange(256))) + rng.randbytes(rng.randrange(80))
            self.each("datagram", peer, noise)
        elif kind == 1 and self.rigs[0].wire:
            datagram = bytearray(self.rigs[0].wire[-1][0])
            datagram[rng.randrange(len(datagram))] ^= 1 << rng.randrange(8)
            if 128 <= datagram[0] <= 191:
                self.each("datagram", peer, bytes(datagram))
        elif kind == 2:
            body = rng.randbytes(4 * rng.randrange(1, 8))
            head = bytes((0x80 | rng.randrange(32), rng.choice((200, 201, 202, 203, 205, 206, 207)), 0, len(body) // 4))
            self.each("rtcp", peer, head + body if rng.random() < 0.5 else rtcp.receiver_report(1, []) + head + body)
        elif kind == 3:
            self.each("rtp", peer, ssrc=rng.getrandbits(32), sequence=1, timestamp=1, payload=b"?", payload_type=34)
        elif rng.random() < 0.2:
            self.each("rtcp", 1, rtcp.bye([rng.choice(self.streams).ssrc]))

    def new_ssrc(self) -> None:
        """A layer starts again with another SSRC."""
        place = self.rng.randrange(len(RIDS))
        old = self.streams[place]
        self.add_stream(old.ssrc + 1, old.rid)
        self.streams[place] = self.streams.pop()

    def check_from(self) -> None:
        """A check of one peer from an address of its own, or from that of another."""
        rng = self.rng
        peer, place, nominated = rng.choice((1, *self.viewers)), rng.randrange(12), rng.random() < 0.5
        of = peer if rng.random() < 0.8 else rng.choice((1, *self.viewers))
        for rig in self.rigs:
            rig.plane.add_address(peer, rig.address(of, place), nominated=nominated, now=rig.now)

    def goes_elsewhere(self) -> None:
        """A peer sends from another of its addresses from now on, which checks may have shown."""
        peer, place = self.rng.choice((1, *self.viewers)), self.rng.choice((0, 0, self.rng.randrange(12)))
        for rig in self.rigs:
            rig.places[peer] = place
            rig.check(peer, place, nominated=False)

    def joins(self) -> None:
        self.consume(self.rng.choice(self.viewers), self.rng.choice((1, 2, 3, 4)))

    def leaves(self) -> None:
        consumer = self.rng.randrange(1, self.consumers + 1)
        for rig in self.rigs:
            rig.plane.close_consumer(consumer)

    # -- what must be the same

    def check(self) -> None:
        reference, compiled = self.rigs
        if compiled.opens:
            same(compiled.plain, reference.plain)
        else:
            same(
                [sent for sent in compiled.wire if not is_rtcp(sent[0])],
                [x for x in reference.wire if not is_rtcp(x[0])],
            )
            same(compiled.plain, [opened for opened in reference.plain if is_rtcp(opened[1])])
        assert compiled.events == reference.events
        assert told(compiled.plane.snapshot()) == told(reference.plane.snapshot())
        assert compiled.plane.next_deadline() == reference.plane.next_deadline()


def same(ours: list[tuple[object, ...]], theirs: list[tuple[object, ...]]) -> None:
    for number, (mine, other) in enumerate(zip(ours, theirs, strict=False)):
        assert mine == other, f"datagram {number} of {len(theirs)}"
    assert len(ours) == len(theirs)


def told(snapshot: PlaneSnapshot) -> tuple[object, ...]:
    drops = {reason: count for reason, count in snapshot.totals.drops.items() if count}
    totals = snapshot.totals
    counts = totals.forwarded, totals.feedbacks_sent, totals.feedbacks_received
    return drops, snapshot.peers, snapshot.producers, snapshot.consumers, counts


@pytest.mark.parametrize("profile", SrtpProfile)
@settings(max_examples=examples(12), deadline=None)
@given(seed=st.integers(0, 1 << 32))
def test_both_planes_send_the_same_bytes_and_tell_the_same_facts(seed: int, profile: SrtpProfile) -> None:
    twins = Twins(seed, profile)
    for _ in range(STEPS):
        twins.step()
    twins.check()
    assert twins.rigs[0].wire


@settings(max_examples=examples(30), deadline=None)
@given(packets=st.lists(st.binary(min_size=10, max_size=200), max_size=30))
def test_both_planes_make_the_same_of_any_authentic_packet(packets: list[bytes]) -> None:
    twins = Twins(1, SrtpProfile.AEAD_AES_128_GCM)
    for packet in packets:
        for head in (b"\x90\x60", b"\xb0\xe0", b"\x80\x61", b"\x81\xcd", b"\xa1\xce", b"\x81\xc8", b"\x82\xca"):
            body = head + packet
            if 192 <= body[1] <= 223:
                twins.each("rtcp", 1, body)
            elif rtp.HEADER_LENGTH + 4 + 4 * int.from_bytes(body[14:16], "big") <= len(body) or not body[0] & 0x10:
                twins.each("rtp_bytes", 1, body)
    twins.check()


def test_ssrc_is_not_taken_twice_whichever_plane() -> None:
    for rig in Twins(1, SrtpProfile.AEAD_AES_128_GCM).rigs:
        spec = ConsumerSpec(consumer=99, peer=2, producer=1, ssrc=5001, payload_type=100, codec="VP8")
        with pytest.raises(ValueError, match="SSRC 5001"):
            rig.plane.consume(spec, now=rig.now)


@settings(max_examples=examples(40), deadline=None)
@given(
    chunks=st.lists(st.binary(min_size=2, max_size=2), max_size=40),
    tail=st.binary(max_size=90),
    base=st.integers(0, 400),
)
def test_both_planes_make_the_same_of_any_transport_feedback(chunks: list[bytes], tail: bytes, base: int) -> None:
    twins = Twins(1, SrtpProfile.AEAD_AES_128_GCM)
    for rig in twins.rigs:
        rig.plane.follow_delivery(2, True)
        rig.consume(90, 2, 2, codec="opus", transport_cc=8)
    for number in range(400):
        twins.each("rtp", 1, ssrc=900, sequence=number, timestamp=number, payload=b"x", payload_type=111, mid="2")
    for reported in (1, 7, 8, 15, 100, 8192, 8193):
        body = (
            base.to_bytes(2, "big")
            + reported.to_bytes(2, "big")
            + bytes((0, 9, base & 255, 3))
            + b"".join(chunks)
            + tail
        )
        body += bytes(-len(body) % 4)
        twins.each("rtcp", 2, b"\x8f\xcd" + (2 + len(body) // 4).to_bytes(2, "big") + bytes(8) + body)
    twins.check()
