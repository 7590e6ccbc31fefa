"""Publisher to receiver over real UDP, DTLS and SRTP on the loopback, with an SFU that only passes packets on."""

from __future__ import annotations

import asyncio
import random
import socket
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import pytest

from client_sim.core.audience import Audience
from client_sim.core.clip import Clip, ClipIndex
from client_sim.core.listener import source_of
from client_sim.core.replay import LoopedPicture, LoopedSound
from client_sim.shell.pacer import Pacer
from client_sim.shell.replayer import Replayer
from player.core.own_tracks import OwnTracks
from player.core.session_sdp import FarEnd, Incoming
from player.core.track import Numbers
from player.shell.publisher import TrackPublisher
from player.shell.receiver import Receiver
from player.shell.transport import MediaTransport, TransportFailed
from shared.records import PublicationRecord
from shared.rtc import rtcp, rtp, sdp, stun_check
from shared.rtc.dtls import Certificate, DtlsTransport
from shared.rtc.srtp import SrtpSession

CLIP = Clip(
    audio=tuple(b"opus%03d" % n for n in range(100)),
    video=tuple(bytes([n % 10 > 0]) + n.to_bytes(2, "big") * (900 if n % 10 == 0 else 20) for n in range(40)),
    keys=(0, 10, 20, 30),
    fps=20,
    width=320,
    height=180,
)
WITHIN_S = 20.0


async def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not holds():
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(0.01)


class FarSide:
    """The SFU's end of one peer connection: answers checks, shakes hands, and hands over what it decrypts."""

    def __init__(self) -> None:
        self.ufrag, self.pwd = "farufrag", "far-password-of-some-length"
        self.certificate = Certificate.generateCertificate()
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self.socket.bind(("127.0.0.1", 0))
        self.peer: tuple[str, int] | None = None
        self.session: SrtpSession | None = None
        self.checks = 0
        self.answering = True
        self.on_rtp: Callable[[bytes], None] = lambda _: None
        self.rtcp: list[rtcp.RtcpPacket] = []
        self.dtls = DtlsTransport(send=self.send_raw, role="server", certificate=self.certificate)
        asyncio.get_running_loop().add_reader(self.socket.fileno(), self._readable)

    @property
    def far_end(self) -> FarEnd:
        proof = self.certificate.fingerprint
        fingerprints = (sdp.Fingerprint(proof.algorithm, proof.value),)
        ip, port = self.socket.getsockname()
        return FarEnd(self.ufrag, self.pwd, fingerprints, ip, port)

    async def accept(self, transport: MediaTransport) -> None:
        proof = transport.own.fingerprint
        keys = await self.dtls.handshake([(proof.algorithm, proof.value)])
        self.session = SrtpSession(keys)

    def send_raw(self, datagram: bytes) -> None:
        if self.peer is not None:
            self.socket.sendto(datagram, self.peer)

    def send_rtp(self, packet: bytes) -> None:
        assert self.session is not None
        self.send_raw(self.session.protect(packet))

    def send_rtcp(self, compound: bytes) -> None:
        assert self.session is not None
        self.send_raw(self.session.protect_rtcp(compound))

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self.socket.fileno())
        self.socket.close()

    def _readable(self) -> None:
        datagram, self.peer = self.socket.recvfrom(2048)
        if datagram[0] <= 3:
            check = stun_check.parse_check(datagram)
            assert check.local_ufrag == self.ufrag
            assert check.use_candidate
            assert stun_check.verify(check, self.pwd)
            self.checks += 1
            if self.answering:
                self.send_raw(stun_check.binding_response(check, source=self.peer, password=self.pwd))
        elif datagram[0] <= 63:
            self.dtls.feed(datagram)
        elif self.session is not None and 192 <= datagram[1] <= 223:
            self.rtcp += rtcp.parse(self.session.unprotect_rtcp(datagram))
        elif self.session is not None:
            self.on_rtp(self.session.unprotect(datagram))


@dataclass
class Pair:
    """One player's publish connection and another's subscribe connection, and the SFU's ends of both."""

    up: MediaTransport
    down: MediaTransport
    far_up: FarSide
    far_down: FarSide
    publisher: TrackPublisher
    receiver: Receiver
    audience: Audience
    dropped: list[bytes] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)


AUDIO, VIDEO = Numbers(1, 2, 100, 0, 0), Numbers(11, 12, 65_500, 0, 0)
RECORDS = {
    kind: PublicationRecord(publication=kind, player="ann", kind=kind, source=source_of(CLIP.id), sfu="a")
    for kind in ("audio", "video")
}


async def connected(transport: MediaTransport, far: FarSide) -> None:
    await asyncio.gather(transport.connect(far.far_end), far.accept(transport))


@pytest.fixture
async def pair() -> AsyncIterator[Pair]:
    far_up, far_down = FarSide(), FarSide()
    pacer = Pacer()
    audience = Audience(ClipIndex(CLIP))
    start = time.monotonic()
    tracks = (
        LoopedSound(CLIP, mid="0", numbers=AUDIO, start=start),
        LoopedPicture(CLIP, mid="1", numbers=VIDEO, start=start),
    )
    publisher = TrackPublisher(OwnTracks(tracks), cname="ann")
    closed: list[str] = []
    up = MediaTransport(
        on_rtp=lambda _p, _at: None,
        on_rtcp=lambda compound, _at: publisher.feedback(up, compound),
        on_closed=closed.append,
    )
    down = MediaTransport(
        on_rtp=lambda packet, at: receiver.on_rtp(packet, at),
        on_rtcp=lambda compound, at: receiver.on_rtcp(compound, at),
        on_closed=closed.append,
    )
    receiver = Receiver(
        down,
        on_unit=lambda stream, unit, _timestamp, at: audience.take(RECORDS[stream.publication], unit, at=at) and None,
        ssrc=99,
        cname="bob",
    )
    receiver.set_streams(
        [
            Incoming("audio", "audio", 1, None, 111, None, 48_000),
            Incoming("video", "video", 11, 12, 96, 97, 90_000),
        ]
    )
    await asyncio.gather(connected(up, far_up), connected(down, far_down))
    far_up.on_rtp = far_down.send_rtp
    publisher.attach(up)
    pacer.add(Replayer(tracks, publisher), start)
    yield Pair(up, down, far_up, far_down, publisher, receiver, audience, closed=closed)
    pacer.stop()
    await asyncio.gather(up.close(), down.close())
    far_up.close()
    far_down.close()


def units(pair: Pair, kind: str) -> int:
    return sum(one.report.units for one in pair.audience.received(now=time.monotonic()) if one.kind == kind)


async def test_media_arrives_untouched_and_in_full(pair: Pair) -> None:
    await until(lambda: units(pair, "audio") > 60 and units(pair, "video") > 25)
    for one in pair.audience.received(now=time.monotonic()):
        assert one.checked
        assert (one.report.damaged, one.report.missing, one.report.duplicates) == (0, 0, 0)
    assert pair.receiver.unknown_packets == pair.receiver.bad_packets == pair.down.bad_packets == 0


async def test_both_copies_of_a_publication_are_one_to_the_listener(pair: Pair) -> None:
    """The second copy comes as other streams, with numbers of their own, as from another SFU."""
    second = {1: (21, 1000), 11: (31, 2000)}
    pair.receiver.set_streams(
        [
            Incoming("audio", "audio", 1, None, 111, None, 48_000),
            Incoming("video", "video", 11, 12, 96, 97, 90_000),
            Incoming("audio", "audio", 21, None, 111, None, 48_000),
            Incoming("video", "video", 31, None, 96, None, 90_000),
        ]
    )

    def twice(packet: bytes) -> None:
        pair.far_down.send_rtp(packet)
        ssrc, shift = second[rtp.parse(packet).ssrc]
        sequence = (int.from_bytes(packet[2:4], "big") + shift) & 0xFFFF
        renumbered = sequence.to_bytes(2, "big") + packet[4:8] + ssrc.to_bytes(4, "big")
        pair.far_down.send_rtp(packet[:2] + renumbered + packet[12:])

    pair.far_up.on_rtp = twice
    await until(lambda: units(pair, "audio") > 40 and units(pair, "video") > 20)
    for one in pair.audience.received(now=time.monotonic()):
        assert one.report.duplicates > one.report.units // 2
        assert (one.report.missing, one.report.damaged) == (0, 0)


async def test_changed_content_is_noticed(pair: Pair) -> None:
    def spoil(packet: bytes) -> None:
        header = rtp.parse(packet)
        pair.far_down.send_rtp(packet[:-1] + b"!" if header.ssrc == 1 and header.sequence % 5 == 0 else packet)

    pair.far_up.on_rtp = spoil
    await until(lambda: any(one.report.damaged > 2 for one in pair.audience.received(now=time.monotonic())))


async def test_lost_video_is_asked_for_and_repaired(pair: Pair) -> None:
    """The SFU's part, NACK towards the publisher and retransmission towards the subscriber, is played by the test."""

    def pass_on(packet: bytes) -> None:
        header = rtp.parse(packet)
        if header.ssrc == 11 and header.sequence % 7 == 3:
            pair.dropped.append(packet)
            pair.far_up.send_rtcp(rtcp.nack(sender=5, media=11, sequences=[header.sequence]))
        else:
            pair.far_down.send_rtp(packet)

    pair.far_up.on_rtp = pass_on
    await until(lambda: pair.receiver.repaired > 3 and units(pair, "video") > 20)
    video = next(one for one in pair.audience.received(now=time.monotonic()) if one.kind == "video")
    assert video.report.damaged == 0
    assert pair.publisher.repairs >= pair.receiver.repaired
    await until(lambda: any(isinstance(packet, rtcp.Nack) for packet in pair.far_down.rtcp))


async def test_both_sides_report_each_second(pair: Pair) -> None:
    def have(kind: type, far: FarSide) -> bool:
        return any(isinstance(packet, kind) for packet in far.rtcp)

    await until(lambda: have(rtcp.SenderReport, pair.far_up) and have(rtcp.SourceDescription, pair.far_up))
    await until(lambda: have(rtcp.ReceiverReport, pair.far_down))
    sent = {packet.ssrc for packet in pair.far_up.rtcp if isinstance(packet, rtcp.SenderReport)}
    assert sent <= {1, 11}
    await until(
        lambda: any(
            {block.ssrc for block in packet.blocks} == {1, 11}
            for packet in pair.far_down.rtcp
            if isinstance(packet, rtcp.ReceiverReport)
        )
    )


async def test_without_a_key_frame_one_is_asked_for(pair: Pair) -> None:
    def hold_back_keys(packet: bytes) -> None:
        header = rtp.parse(packet)
        if header.ssrc == 11 and packet[header.payload_start + 4] == 0:
            return
        pair.far_down.send_rtp(packet)

    pair.far_up.on_rtp = hold_back_keys
    pair.receiver.set_streams([Incoming("video", "video", 11, None, 96, None, 90_000)])
    await until(lambda: any(isinstance(packet, rtcp.PictureLoss) for packet in pair.far_down.rtcp))


async def test_garbage_on_the_socket_is_counted_and_nothing_else(pair: Pair) -> None:
    rng = random.Random(3)
    for size in [0, 1, 11, 12, 100, 1500, *[rng.randrange(1, 200) for _ in range(200)]]:
        pair.far_down.send_raw(rng.randbytes(size))
    for first in (0, 20, 128, 130):
        pair.far_down.send_raw(bytes([first, 200]) + rng.randbytes(40))
    before = units(pair, "audio")
    await until(lambda: units(pair, "audio") > before + 10)
    assert pair.down.bad_packets > 0


async def test_the_end_of_the_far_side_is_noticed_at_once(pair: Pair) -> None:
    pair.far_up.close()
    await until(lambda: bool(pair.closed))
    assert pair.closed == ["refused"]
    pair.far_up.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    asyncio.get_running_loop().add_reader(pair.far_up.socket.fileno(), lambda: None)


async def test_a_clean_goodbye_is_noticed(pair: Pair) -> None:
    await pair.far_down.dtls.close()
    await until(lambda: "dtls-closed" in pair.closed)


async def test_no_answer_is_a_typed_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("player.shell.transport.CONNECT_S", 0.3)
    far = FarSide()
    far.answering = False
    transport = MediaTransport(on_rtp=lambda _p, _a: None, on_rtcp=lambda _p, _a: None, on_closed=lambda _: None)
    with pytest.raises(TransportFailed, match="ice-timeout"):
        await transport.connect(far.far_end)
    assert far.checks > 1, "it asked again"
    far.close()


async def test_the_wrong_certificate_is_refused() -> None:
    far = FarSide()
    wrong = sdp.Fingerprint("sha-256", ":".join(["00"] * 32))
    end = FarEnd(far.ufrag, far.pwd, (wrong,), *far.socket.getsockname())
    transport = MediaTransport(on_rtp=lambda _p, _a: None, on_rtcp=lambda _p, _a: None, on_closed=lambda _: None)
    accepting = asyncio.create_task(far.accept(transport))
    with pytest.raises(TransportFailed, match="dtls-fingerprint"):
        await transport.connect(end)
    accepting.cancel()
    await asyncio.gather(accepting, return_exceptions=True)
    far.close()
