"""A plane without sockets: peers with known keys, a wire that is a list, and a clock that is an argument."""

from __future__ import annotations

import random
from collections import defaultdict

from sfu.plane.api import Address, ConsumerSpec, Event, Kind, Plane, ProducerCodec, ProducerSpec
from sfu.plane.compiled import CompiledPlane
from sfu.plane.reference import ReferencePlane
from shared.rtc import rtcp, rtp
from shared.rtc.demux import is_rtcp
from shared.rtc.srtp import SrtpKeys, SrtpProfile, SrtpSession

VP8 = ProducerCodec(payload_type=96, name="VP8", clock_rate=90_000, rtx_payload_type=97)
H264 = ProducerCodec(payload_type=98, name="H264", clock_rate=90_000, rtx_payload_type=99)
OPUS = ProducerCodec(payload_type=111, name="opus", clock_rate=48_000)
EXTENSIONS = {
    1: rtp.AUDIO_LEVEL_URI,
    2: rtp.ABS_SEND_TIME_URI,
    3: rtp.TRANSPORT_CC_URI,
    4: rtp.MID_URI,
    10: rtp.RID_URI,
    11: rtp.REPAIRED_RID_URI,
    13: rtp.ORIENTATION_URI,
}

LENGTHS = {
    SrtpProfile.AEAD_AES_128_GCM: (16, 12),
    SrtpProfile.AEAD_AES_256_GCM: (32, 12),
    SrtpProfile.AES128_CM_SHA1_80: (16, 14),
}
"""Of master key and master salt [bytes]."""

Seen = tuple[rtp.RtpHeader, bytes, bytes]
"""Header, whole packet, payload."""


def vp8_payload(
    *, key: bool = False, start: bool = True, picture_id: int = 0, tl0: int = 0, body: bytes = b"x"
) -> bytes:
    """A VP8 packet with 15-bit picture id, TL0PICIDX and temporal layer 0."""
    first = 0x80 | (0x10 if start else 0)
    head = bytes((first, 0xE0, 0x80 | picture_id >> 8 & 0x7F, picture_id & 0xFF, tl0 & 0xFF, 0))
    return head + bytes((0 if key else 1,)) + body


PLANES: dict[str, type[ReferencePlane] | type[CompiledPlane]] = {
    "reference": ReferencePlane,
    "compiled": CompiledPlane,
}


class Rig:
    """Time stands still until `now` is set or `run_until` is called."""

    kind = "reference"
    """The plane that rigs get unless they are told; the plane's tests run once with each."""

    def __init__(
        self, *, seed: int = 1, kind: str | None = None, profile: SrtpProfile = SrtpProfile.AEAD_AES_128_GCM
    ) -> None:
        self.now = 100.0
        self.profile = profile
        self._datagrams: list[tuple[bytes, Address]] = []
        self.wire: list[tuple[bytes, Address]] = []
        """All that was sent, as it was sent."""
        self.plain: list[tuple[int, bytes]] = []
        """All that was sent, decrypted, with the peer it went to."""
        self._opened: dict[bytes, bytes] = {}
        self.deaf: set[int] = set()
        """Peers that lose all that is sent to them."""
        self.plane: Plane = PLANES[kind or self.kind](
            send=lambda datagram, address: self._datagrams.append((datagram, address)), rng=random.Random(seed)
        )
        self._sessions: dict[int, SrtpSession] = {}
        self.places: dict[int, int] = {}
        """Peer -> which of its addresses it sends from; the first unless it says so."""
        self.sent: dict[int, list[Seen]] = defaultdict(list)
        self.feedback: dict[int, list[rtcp.RtcpPacket]] = defaultdict(list)
        self.events: list[Event] = []
        self.loses = False
        """On: what peers send does not arrive."""
        self.opens = True
        """Off: of what was sent only RTCP is decrypted."""
        self.given = 0
        """Datagrams given to the plane."""

    @staticmethod
    def address(peer: int, place: int = 0) -> Address:
        """One of the peer's addresses: it has as many as it likes. From the tenth on they are TCP connections."""
        if place >= 10:
            return "192.0.2.1", 1000 + peer, f"tcp/{100 * place + peer}"
        return f"192.0.2.{1 + place}", 1000 + peer

    def check(self, peer: int, place: int, *, nominated: bool = False) -> None:
        """An authentic check of the peer came from there."""
        self.plane.add_address(peer, self.address(peer, place), nominated=nominated, now=self.now)

    def peer(self, peer: int) -> None:
        self.plane.add_peer(peer)
        rng = random.Random(peer)
        key, salt = LENGTHS[self.profile]
        a, b, c, d = rng.randbytes(key), rng.randbytes(salt), rng.randbytes(key), rng.randbytes(salt)
        keys = SrtpKeys(self.profile, a, b, c, d)
        self.plane.set_keys(peer, keys, address=self.address(peer), now=self.now)
        self._sessions[peer] = SrtpSession(SrtpKeys(self.profile, c, d, a, b))

    def rekeyed(self, peer: int, keys: SrtpKeys) -> None:
        """The peer's own side of keys that the plane has been given."""
        theirs = SrtpKeys(keys.profile, keys.tx_key, keys.tx_salt, keys.rx_key, keys.rx_salt)
        self._sessions[peer] = SrtpSession(theirs)

    def produce(
        self,
        producer: int,
        peer: int,
        *,
        kind: Kind = "video",
        rids: tuple[str, ...] = (),
        codec: ProducerCodec | None = None,
        parameter_sets: tuple[bytes, ...] = (),
    ) -> None:
        codecs = (codec or (VP8 if kind == "video" else OPUS),)
        spec = ProducerSpec(
            producer=producer,
            peer=peer,
            kind=kind,
            mid=str(producer),
            codecs=codecs,
            extensions=EXTENSIONS,
            rids=rids,
            parameter_sets=parameter_sets,
        )
        assert self.plane.produce(spec, now=self.now)

    def consume(
        self,
        consumer: int,
        peer: int,
        producer: int,
        *,
        codec: str = "VP8",
        rtx: bool = True,
        transport_cc: int | None = None,
    ) -> None:
        """`transport_cc` is the id of transport-wide sequence numbers towards the peer."""
        extensions = {rtp.ORIENTATION_URI: 5, rtp.ABS_SEND_TIME_URI: 7, rtp.AUDIO_LEVEL_URI: 6}
        if transport_cc is not None:
            extensions[rtp.TRANSPORT_CC_URI] = transport_cc
        spec = ConsumerSpec(
            consumer=consumer,
            peer=peer,
            producer=producer,
            ssrc=5000 + consumer,
            payload_type=100,
            codec=codec,
            rtx_ssrc=6000 + consumer if rtx else None,
            rtx_payload_type=101 if rtx else None,
            extensions=extensions,
            cname="room",
        )
        assert self.plane.consume(spec, now=self.now)

    def rtp(
        self,
        peer: int,
        *,
        ssrc: int,
        sequence: int,
        timestamp: int,
        payload: bytes,
        payload_type: int = 96,
        mid: str = "",
        rid: str = "",
        repaired_rid: str = "",
        marker: bool = False,
        padding: int = 0,
        extra: tuple[tuple[int, bytes], ...] = (),
    ) -> None:
        """A packet from a peer, and all that follows from it."""
        named = ((4, mid), (10, rid), (11, repaired_rid))
        elements = [(number, value.encode()) for number, value in named if value] + list(extra)
        packet = rtp.build(
            payload_type=payload_type,
            sequence=sequence & 0xFFFF,
            timestamp=timestamp & 0xFFFFFFFF,
            ssrc=ssrc,
            payload=payload,
            marker=marker,
            extension_elements=elements,
            padding=padding,
        )
        self.datagram(peer, self._sessions[peer].protect(packet))

    def rtp_bytes(self, peer: int, packet: bytes) -> None:
        """A packet from a peer that need not be a good one."""
        self.datagram(peer, self._sessions[peer].protect(packet))

    def rtcp(self, peer: int, compound: bytes) -> None:
        self.datagram(peer, self._sessions[peer].protect_rtcp(compound))

    def datagram(self, peer: int, datagram: bytes) -> None:
        if self.loses:
            return
        self.given += 1
        self.plane.handle(datagram, self.address(peer, self.places.get(peer, 0)), now=self.now)
        self.collect()

    def run_until(self, moment: float) -> None:
        """Let timers go off, each at its time."""
        while (deadline := self.plane.next_deadline()) is not None and deadline <= moment:
            self.now = max(self.now, deadline)
            self.plane.tick(now=self.now)
            self.collect()
        self.now = moment

    def collect(self) -> None:
        """Decrypt what was sent, as its receivers would."""
        datagrams, self._datagrams = self._datagrams, []
        self.wire.extend(datagrams)
        for datagram, address in datagrams:
            peer = address[1] - 1000
            if peer in self.deaf or not (self.opens or is_rtcp(datagram)):
                continue
            session = self._sessions[peer]
            if datagram in self._opened:
                # A resend without RTX is the same to the byte, which the receiver's replay protection refuses.
                self.plain.append((peer, self._opened[datagram]))
                continue
            packet = session.unprotect_rtcp(datagram) if is_rtcp(datagram) else session.unprotect(datagram)
            self._opened[datagram] = packet
            self.plain.append((peer, packet))
            if is_rtcp(datagram):
                self.feedback[peer].extend(rtcp.parse(packet))
            else:
                header = rtp.parse(packet)
                self.sent[peer].append((header, packet, packet[header.payload_start : header.payload_end]))
        self.events.extend(self.plane.events())

    def drops(self, reason: str) -> int:
        return self.plane.snapshot().totals.drops.get(reason, 0)

    def of(self, peer: int, kind: type[rtcp.RtcpPacket]) -> list[rtcp.RtcpPacket]:
        """The feedback of one kind that a peer got."""
        return [packet for packet in self.feedback[peer] if isinstance(packet, kind)]
