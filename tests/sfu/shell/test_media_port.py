"""The media port over real UDP on loopback: DTLS in both profiles, forwarding, and strangers who get nothing."""

from __future__ import annotations

import asyncio
import itertools
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
import uvloop

from sfu.core.ice_lite import IceDrop
from sfu.plane.api import Address, ConsumerFlowing, ConsumerSpec, Event, ProducerCodec, ProducerFlowing, ProducerSpec
from sfu.plane.choice import PlaneKind, make_plane
from sfu.plane.reference import ReferencePlane
from sfu.shell.media_metrics import MediaCollector
from sfu.shell.peer import PeerEnd, PeerTransport
from sfu.shell.streams import listen_for_streams
from sfu.shell.udp import MediaPort, PortDrop
from shared.errors import BadSdp
from shared.rtc import rtcp, rtp
from shared.rtc.dtls import Certificate, DtlsFailed, DtlsFailure, DtlsTransport
from shared.rtc.srtp import SrtpProfile
from tests.fakes.plane_rig import vp8_payload
from tests.fakes.rtc_peer import RtcPeer, until
from tests.fakes.tcp_peer import TcpPeer

VP8 = ProducerCodec(payload_type=96, name="VP8", clock_rate=90_000, rtx_payload_type=97)
CM_ONLY = (SrtpProfile.AES128_CM_SHA1_80,)


@dataclass
class Side:
    """The SFU's end of one peer, with what it was told."""

    transport: PeerTransport
    connected: asyncio.Event = field(default_factory=asyncio.Event)
    ended: list[tuple[PeerEnd, str]] = field(default_factory=list)


class Sfu:
    """A media port, and the ends it has made."""

    def __init__(self, host: str = "127.0.0.1", plane: PlaneKind = PlaneKind.COMPILED, *, tcp: bool = False) -> None:
        self.events: list[Event] = []
        self.port = MediaPort.open(
            host,
            0,
            on_events=self.events.extend,
            make_plane=lambda send: make_plane(send, kind=plane),
            make_streams=(lambda _: listen_for_streams(host, 0)) if tcp else None,
        )
        self.sides: list[Side] = []
        self.clients: list[RtcPeer] = []

    def side(self) -> Side:
        connected = asyncio.Event()
        ended: list[tuple[PeerEnd, str]] = []
        transport = PeerTransport(
            self.port, on_connected=connected.set, on_ended=lambda end, detail: ended.append((end, detail))
        )
        side = Side(transport, connected, ended)
        self.sides.append(side)
        return side

    async def client(self, *, host: str = "127.0.0.1", profiles: tuple[SrtpProfile, ...] | None = None) -> RtcPeer:
        address = (host, self.port.address[1])
        client = await (RtcPeer.open(address, profiles=profiles) if profiles else RtcPeer.open(address))
        self.clients.append(client)
        return client

    async def tcp_client(self, *, host: str = "127.0.0.1") -> TcpPeer:
        assert self.port.streams is not None
        client = await TcpPeer.open((host, self.port.streams.port))
        self.clients.append(client)
        return client

    async def connect(
        self, *, host: str = "127.0.0.1", profiles: tuple[SrtpProfile, ...] | None = None
    ) -> tuple[RtcPeer, Side]:
        client = await self.client(host=host, profiles=profiles)
        return client, await self.connected(client)

    async def connect_tcp(self, *, host: str = "127.0.0.1") -> tuple[TcpPeer, Side]:
        client = await self.tcp_client(host=host)
        return client, await self.connected(client)

    async def connected(self, client: RtcPeer) -> Side:
        side = self.side()
        side.transport.start([client.fingerprint], "active")
        await client.connect(
            side.transport.credentials.ufrag, side.transport.credentials.pwd, side.transport.fingerprint
        )
        await asyncio.wait_for(side.connected.wait(), 20)
        return side

    def publish(self, side: Side, producer: int = 1) -> None:
        spec = ProducerSpec(
            producer=producer,
            peer=side.transport.peer,
            kind="video",
            mid="0",
            codecs=(VP8,),
            extensions={4: rtp.MID_URI},
        )
        assert self.port.plane.produce(spec, now=self.port.now)

    def subscribe(self, side: Side, consumer: int, producer: int = 1) -> None:
        spec = ConsumerSpec(
            consumer=consumer,
            peer=side.transport.peer,
            producer=producer,
            ssrc=700 + consumer,
            payload_type=100,
            codec="VP8",
            rtx_ssrc=800 + consumer,
            rtx_payload_type=101,
        )
        assert self.port.plane.consume(spec, now=self.port.now)


@pytest.fixture
async def sfu() -> AsyncIterator[Sfu]:
    async with running(Sfu()) as sfu:
        yield sfu


@asynccontextmanager
async def running(sfu: Sfu) -> AsyncIterator[Sfu]:
    yield sfu
    for client in sfu.clients:
        await client.close()
    for side in sfu.sides:
        await side.transport.close()
    snapshot = sfu.port.plane.snapshot()
    assert (snapshot.peers, snapshot.producers, snapshot.consumers) == ((), (), ())
    sfu.port.close()


def packet(number: int, *, ssrc: int = 42) -> bytes:
    payload = vp8_payload(key=number == 0, picture_id=number, tl0=number, body=bytes([number % 256]) * 1000)
    return rtp.build(
        payload_type=96,
        sequence=(65_500 + number) & 0xFFFF,
        timestamp=number * 3000,
        ssrc=ssrc,
        payload=payload,
        marker=True,
        extension_elements=[(4, b"0")] if number < 20 else [],
    )


@pytest.mark.parametrize("profiles", [None, CM_ONLY], ids=["gcm", "cm"])
async def test_a_publisher_reaches_two_subscribers(sfu: Sfu, profiles: tuple[SrtpProfile, ...] | None) -> None:
    publisher, source = await sfu.connect(profiles=profiles)
    viewers = [await sfu.connect() for _ in range(2)]
    expected = CM_ONLY[0] if profiles else SrtpProfile.AEAD_AES_128_GCM
    assert publisher.profile is expected
    sfu.publish(source)
    for number, (_, side) in enumerate(viewers):
        sfu.subscribe(side, number + 1)
    for number in range(100):
        publisher.send_rtp(packet(number))
        await asyncio.sleep(0)
    for viewer, _ in viewers:
        await until(lambda viewer=viewer: len(viewer.received) == 100)  # type: ignore[misc]
        assert viewer.payloads() == [packet(number)[-1007:] for number in range(100)]
        sequences = [header.sequence for header in viewer.headers()]
        assert [rtp.sequence_delta(sequence, sequences[0]) for sequence in sequences] == list(range(100))
    await until(lambda: ConsumerFlowing(2) in sfu.events)
    assert ProducerFlowing(1) in sfu.events


@pytest.mark.parametrize("plane", PlaneKind)
async def test_one_port_serves_ipv6_and_ipv4(plane: PlaneKind) -> None:
    async with running(Sfu("::", plane)) as sfu:
        publisher, source = await sfu.connect(host="::1")
        viewers = [await sfu.connect(host=host) for host in ("127.0.0.1", "::1")]
        sfu.publish(source)
        for number, (_, side) in enumerate(viewers):
            sfu.subscribe(side, number + 1)
        for number in range(20):
            publisher.send_rtp(packet(number))
        for viewer, _ in viewers:
            await until(lambda viewer=viewer: len(viewer.received) == 20)  # type: ignore[misc]
            assert viewer.payloads() == [packet(number)[-1007:] for number in range(20)]


@pytest.mark.parametrize("plane", PlaneKind)
@pytest.mark.parametrize(("bound", "other"), [("0.0.0.0", "127.0.0.2"), ("::", "127.0.0.2"), ("::", "::1")])
async def test_every_datagram_leaves_from_the_address_that_was_asked(plane: PlaneKind, bound: str, other: str) -> None:
    """STUN, DTLS, media in runs and alone, reports; from two addresses of one port at once."""
    async with running(Sfu(bound, plane)) as sfu:
        publisher, source = await sfu.connect(host=other)
        viewers = [await sfu.connect(host=host) for host in (other, "127.0.0.1", other)]
        sfu.publish(source)
        for number, (_, side) in enumerate(viewers):
            sfu.subscribe(side, number + 1)
        for number in range(60):
            publisher.send_rtp(packet(number))
            if number % 10 == 0:
                await asyncio.sleep(0.01)
        for viewer, _ in viewers:
            await until(lambda viewer=viewer: len(viewer.received) == 60)  # type: ignore[misc]
        await until(lambda: bool(publisher.feedback))
        missing = viewers[0][0].headers()[4].sequence
        viewers[0][0].send_rtcp(rtcp.nack(sender=1, media=701, sequences=[missing]))
        await until(lambda: len(viewers[0][0].received) == 61)
        assert [client.from_elsewhere for client in sfu.clients] == [0] * 4
        assert sfu.port.plane.address_of(source.transport.peer) == (*publisher.address, other)


@pytest.mark.parametrize("plane", PlaneKind)
async def test_a_peer_is_sent_to_from_the_address_of_ours_that_it_goes_on_with(plane: PlaneKind) -> None:
    """One port of a client has two ways to it: the one that it nominates and sends on is used."""
    async with running(Sfu("0.0.0.0", plane)) as sfu:
        client, side = await sfu.connect()
        credentials = side.transport.credentials
        client.server = ("127.0.0.2", sfu.port.address[1])
        await client.check(credentials.ufrag, credentials.pwd)
        assert sfu.port.plane.address_of(side.transport.peer) == (*client.address, "127.0.0.1")

        def follows() -> bool:
            client.send_rtcp(rtcp.receiver_report(1, ()))
            return sfu.port.plane.address_of(side.transport.peer) == (*client.address, "127.0.0.2")

        await until(follows, within_s=3.0)


async def test_a_port_bound_to_one_address_asks_nothing_more_of_the_kernel(sfu: Sfu) -> None:
    client, side = await sfu.connect()
    assert sfu.port.plane.address_of(side.transport.peer) == client.address


async def test_a_lost_packet_is_sent_again_on_request(sfu: Sfu) -> None:
    publisher, source = await sfu.connect()
    viewer, side = await sfu.connect()
    sfu.publish(source)
    sfu.subscribe(side, 1)
    for number in range(10):
        publisher.send_rtp(packet(number))
    await until(lambda: len(viewer.received) == 10)
    missing = viewer.headers()[4].sequence
    viewer.send_rtcp(rtcp.nack(sender=1, media=701, sequences=[missing]))
    await until(lambda: len(viewer.received) == 11)
    assert viewer.headers()[-1].ssrc == 801
    assert viewer.payloads()[-1] == missing.to_bytes(2, "big") + packet(4)[-1007:]


async def test_publisher_gets_reports_remb_and_key_frame_requests_without_asking(sfu: Sfu) -> None:
    publisher, source = await sfu.connect()
    _, side = await sfu.connect()
    sfu.publish(source)
    publisher.send_rtp(packet(0))
    await until(lambda: ProducerFlowing(1) in sfu.events)
    sfu.subscribe(side, 1)
    await until(lambda: {type(p) for p in publisher.feedback} >= {rtcp.ReceiverReport, rtcp.Remb, rtcp.PictureLoss})


async def test_wrong_fingerprint_is_refused(sfu: Sfu) -> None:
    side, client = sfu.side(), await sfu.client()
    side.transport.start([Certificate.generateCertificate().fingerprint], "active")
    credentials = side.transport.credentials
    await client.connect(credentials.ufrag, credentials.pwd, side.transport.fingerprint)
    await until(lambda: side.ended == [(PeerEnd.DTLS_FAILED, DtlsFailure.FINGERPRINT.value)])
    assert not side.connected.is_set()
    await until(lambda: client.closed_by_sfu, within_s=20)
    client.send_rtp(packet(0))
    await until(lambda: sfu.port.plane.snapshot().totals.drops.get("no-keys") == 1)


async def test_client_refuses_an_sfu_with_another_certificate(sfu: Sfu) -> None:
    side, client = sfu.side(), await sfu.client()
    side.transport.start([client.fingerprint], "active")
    credentials = side.transport.credentials
    with pytest.raises(DtlsFailed) as failed:
        await client.connect(credentials.ufrag, credentials.pwd, Certificate.generateCertificate().fingerprint)
    assert failed.value.failure is DtlsFailure.FINGERPRINT


async def test_checks_may_come_before_the_answer(sfu: Sfu) -> None:
    side, client = sfu.side(), await sfu.client()
    credentials = side.transport.credentials
    connecting = asyncio.create_task(client.connect(credentials.ufrag, credentials.pwd, side.transport.fingerprint))
    await until(lambda: client.stun_answers > 0 and sfu.port.plane.peer_at(client.address) == side.transport.peer)
    assert not side.connected.is_set()
    side.transport.start([client.fingerprint], "active")
    await connecting
    await asyncio.wait_for(side.connected.wait(), 20)


async def test_bad_integrity_and_unknown_ufrag_are_not_answered(sfu: Sfu) -> None:
    side, client = sfu.side(), await sfu.client()
    credentials = side.transport.credentials
    client.send_raw(client.request(credentials.ufrag, "not the password"))
    client.send_raw(client.request("nobody", credentials.pwd))
    await until(lambda: sfu.port.drops[IceDrop.BAD_INTEGRITY] == 1 and sfu.port.drops[IceDrop.UNKNOWN_UFRAG] == 1)
    # One that is answered, sent after them, shows that nothing else is on its way.
    await client.check(credentials.ufrag, credentials.pwd)
    assert client.stun_answers == 1


async def test_strange_datagrams_do_no_harm(sfu: Sfu) -> None:
    publisher, source = await sfu.connect()
    viewer, side = await sfu.connect()
    sfu.publish(source)
    sfu.subscribe(side, 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        for datagram in (
            b"",
            b"\x00",
            bytes(65_507),
            b"\x16" * 100,
            b"\x80" * 100,
            b"\x00\x01" + bytes(30),
            b"\xff" * 64,
        ):
            stranger.sendto(datagram, sfu.port.address)
    await until(lambda: sfu.port.dropped(PortDrop.UNREADABLE) == 4)
    await until(lambda: sfu.port.drops[PortDrop.DTLS_UNKNOWN_ADDRESS] == 1)
    await until(lambda: sfu.port.plane.snapshot().totals.drops.get("unknown-address") == 1)
    publisher.send_rtp(rtp.build(payload_type=34, sequence=1, timestamp=1, ssrc=666, payload=b"?"))
    await until(lambda: sfu.port.plane.snapshot().totals.drops.get("unknown-ssrc") == 1)
    publisher.send_rtp(packet(0))
    await until(lambda: len(viewer.received) == 1)


async def test_peer_that_says_goodbye_ends(sfu: Sfu) -> None:
    client, side = await sfu.connect()
    await client.dtls.close()
    await until(lambda: side.ended == [(PeerEnd.CLOSED_BY_PEER, "")])


async def test_closing_tells_the_peer_and_is_safe_twice(sfu: Sfu) -> None:
    client, side = await sfu.connect()
    await side.transport.close()
    await side.transport.close()
    await until(lambda: client.closed_by_sfu)
    assert side.ended == []


async def test_closing_in_the_middle_of_a_handshake_is_quiet(sfu: Sfu) -> None:
    side = sfu.side()
    side.transport.start([Certificate.generateCertificate().fingerprint], "active")
    await asyncio.sleep(0)
    await side.transport.close()
    assert side.ended == []


async def test_peer_that_changes_its_address_is_followed(sfu: Sfu) -> None:
    publisher, source = await sfu.connect()
    viewer, side = await sfu.connect()
    sfu.publish(source)
    sfu.subscribe(side, 1)
    publisher.send_rtp(packet(0))
    await until(lambda: len(viewer.received) == 1)
    moved = await sfu.client()
    moved.session = viewer.session
    await moved.check(side.transport.credentials.ufrag, side.transport.credentials.pwd)
    publisher.send_rtp(packet(1))
    await until(lambda: len(viewer.received) == 2)
    assert not moved.received, "a check alone earns no traffic"

    def follows() -> bool:
        moved.send_rtcp(rtcp.receiver_report(1, ()))
        return sfu.port.plane.address_of(side.transport.peer) == moved.address

    await until(follows, within_s=3.0)
    publisher.send_rtp(packet(2))
    await until(lambda: len(moved.received) == 1)
    assert len(viewer.received) == 2


@pytest.mark.parametrize("plane", PlaneKind)
async def test_a_peer_whose_port_changes_goes_on_without_a_nomination(plane: PlaneKind) -> None:
    """As behind a NAT that has forgotten it: its checks come from the new port, and name no pair again."""
    async with running(Sfu(plane=plane)) as sfu:
        publisher, source = await sfu.connect()
        viewer, side = await sfu.connect()
        sfu.publish(source)
        sfu.subscribe(side, 1)
        publisher.send_rtp(packet(0))
        await until(lambda: len(viewer.received) == 1)
        moved = []
        for client, end in ((publisher, source), (viewer, side)):
            client.transport.close()
            new = await sfu.client()
            new.session = client.session
            credentials = end.transport.credentials
            new.send_raw(new.request(credentials.ufrag, "a wrong password"))
            refused = len(moved) + 1
            await until(lambda refused=refused: sfu.port.drops[IceDrop.BAD_INTEGRITY] == refused)  # type: ignore[misc]
            assert sfu.port.plane.peer_at(new.address) is None
            await new.check(credentials.ufrag, credentials.pwd, nominate=False)
            moved.append(new)
        number = itertools.count(1)

        def arrives() -> bool:
            moved[0].send_rtp(packet(next(number)))
            moved[1].send_rtcp(rtcp.receiver_report(1, ()))
            return len(moved[1].received) > 0

        await until(arrives, within_s=3.0)
        assert (source.ended, side.ended) == ([], [])


@pytest.mark.parametrize("plane", PlaneKind)
async def test_a_check_sent_again_from_a_forged_address_gets_no_media(plane: PlaneKind) -> None:
    """With USE-CANDIDATE, byte for byte as the viewer has sent it."""
    async with running(Sfu(plane=plane)) as sfu:
        publisher, source = await sfu.connect()
        viewer, side = await sfu.connect()
        stranger = await sfu.client()
        sfu.publish(source)
        sfu.subscribe(side, 1)
        credentials = side.transport.credentials
        for number in range(30):
            stranger.send_raw(viewer.request(credentials.ufrag, credentials.pwd))
            stranger.send_raw(b"\x80\xc9\0\1" + bytes(24))
            publisher.send_rtp(packet(number))
            await until(lambda number=number: len(viewer.received) == number + 1)  # type: ignore[misc]
        assert stranger.datagrams == stranger.stun_answers > 0


async def test_ice_restart_accepts_new_credentials_and_retires_the_old(sfu: Sfu) -> None:
    client, side = await sfu.connect()
    old = side.transport.credentials
    new = side.transport.restart_ice()
    await client.check(old.ufrag, old.pwd)
    await client.check(new.ufrag, new.pwd)
    answers = client.stun_answers
    client.send_raw(client.request(old.ufrag, old.pwd))
    await until(lambda: sfu.port.drops[IceDrop.UNKNOWN_UFRAG] == 1)
    assert client.stun_answers == answers
    assert side.transport.connected


async def begin_again(sfu: Sfu, before: RtcPeer, *, with_its_certificate: bool = True) -> RtcPeer:
    """A new connection, as a page makes one: ufrag, port and handshake are new."""
    client = await sfu.client()
    if with_its_certificate:
        client.use_certificate(before.certificate)
    return client


@pytest.mark.parametrize("plane", PlaneKind)
async def test_a_new_connection_with_the_same_certificate_shakes_hands_again(plane: PlaneKind) -> None:
    async with running(Sfu(plane=plane)) as sfu:
        publisher, source = await sfu.connect()
        viewer, side = await sfu.connect()
        sfu.publish(source)
        sfu.subscribe(side, 1)
        publisher.send_rtp(packet(0))
        await until(lambda: len(viewer.received) == 1)
        moved = []
        for client, end in ((publisher, source), (viewer, side)):
            client.transport.close()
            new = await begin_again(sfu, client)
            fresh = end.transport.restart_ice()
            await asyncio.wait_for(new.connect(fresh.ufrag, fresh.pwd, end.transport.fingerprint), 5)
            moved.append(new)
        number = itertools.count(0)

        def arrives() -> bool:
            moved[0].send_rtp(packet(next(number), ssrc=43))
            return len(moved[1].received) > 3

        await until(arrives, within_s=5.0)
        assert (source.ended, side.ended) == ([], [])
        await moved[1].dtls.close()
        await until(lambda: side.ended == [(PeerEnd.CLOSED_BY_PEER, "")])


@pytest.mark.parametrize("plane", PlaneKind)
async def test_an_answer_that_names_another_certificate_lets_its_connection_take_over(plane: PlaneKind) -> None:
    """A page whose connection has died answers our next offer with another one, which has a certificate of its own."""
    async with running(Sfu(plane=plane)) as sfu:
        publisher, source = await sfu.connect()
        viewer, side = await sfu.connect()
        sfu.publish(source)
        sfu.subscribe(side, 1)
        publisher.send_rtp(packet(0))
        await until(lambda: len(viewer.received) == 1)
        new = await begin_again(sfu, viewer, with_its_certificate=False)
        side.transport.start([new.fingerprint], "active")
        publisher.send_rtp(packet(1))
        await until(lambda: len(viewer.received) == 2)
        credentials = side.transport.credentials
        await asyncio.wait_for(new.connect(credentials.ufrag, credentials.pwd, side.transport.fingerprint), 5)
        number = itertools.count(2)

        def arrives() -> bool:
            publisher.send_rtp(packet(next(number)))
            return len(new.received) > 3

        await until(arrives, within_s=5.0)
        assert side.ended == []


async def test_a_handshake_begun_again_by_another_changes_nothing(sfu: Sfu) -> None:
    """Be it with another certificate, never finished, or from an address that no check has shown."""
    publisher, source = await sfu.connect()
    viewer, side = await sfu.connect()
    sfu.publish(source)
    sfu.subscribe(side, 1)
    credentials = side.transport.credentials
    thief = await begin_again(sfu, viewer, with_its_certificate=False)
    mute = await begin_again(sfu, viewer)
    unknown = await begin_again(sfu, viewer)
    for stranger in (thief, mute):
        await stranger.check(credentials.ufrag, credentials.pwd)
    mute.deaf_to_dtls = unknown.deaf_to_dtls = True
    tasks = [
        asyncio.create_task(stranger.dtls.handshake([side.transport.fingerprint], timeout_s=2.0))
        for stranger in (thief, mute, unknown)
    ]
    await until(lambda: sfu.port.drops[PortDrop.DTLS_UNKNOWN_ADDRESS] > 0 and mute.datagrams > 2)
    await until(lambda: thief.closed_by_sfu)
    for number in range(20):
        publisher.send_rtp(packet(number))
        await until(lambda number=number: len(viewer.received) == number + 1)  # type: ignore[misc]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert not any(stranger.received for stranger in (thief, mute, unknown))
    assert side.ended == []
    await viewer.dtls.close()
    await until(lambda: side.ended == [(PeerEnd.CLOSED_BY_PEER, "")])


async def test_the_handshakes_begun_for_an_address_are_bounded(sfu: Sfu) -> None:
    """A forged ClientHello is answered with a flight; a thousand of them are not answered with a thousand."""
    client, side = await sfu.connect()
    stranger = await begin_again(sfu, client)
    stranger.deaf_to_dtls = True
    await stranger.check(side.transport.credentials.ufrag, side.transport.credentials.pwd)
    hello = await first_hello()
    for number in range(1000):
        stranger.send_raw(hello[:27] + number.to_bytes(32, "big") + hello[59:])
        if number % 50 == 0:
            await asyncio.sleep(0.001)
    checks = stranger.stun_answers
    await asyncio.sleep(0.3)
    assert 0 < stranger.datagrams - checks <= 4
    assert side.ended == []


async def first_hello() -> bytes:
    """The first flight of a DTLS client."""
    flights: list[bytes] = []
    dtls = DtlsTransport(send=flights.append, role="client", certificate=Certificate.generateCertificate())
    task = asyncio.create_task(dtls.handshake([Certificate.generateCertificate().fingerprint]))
    await until(lambda: bool(flights))
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return flights[0]


async def test_a_peer_that_wants_to_be_passive_too_is_refused(sfu: Sfu) -> None:
    side = sfu.side()
    with pytest.raises(BadSdp):
        side.transport.start([Certificate.generateCertificate().fingerprint], "passive")
    with pytest.raises(BadSdp):
        side.transport.start([], "active")


async def test_metrics_have_only_bounded_labels(sfu: Sfu) -> None:
    client = await sfu.client()
    client.send_raw(bytes(2000))
    await until(lambda: sfu.port.dropped(PortDrop.UNREADABLE) == 1)
    families = {family.name: family for family in MediaCollector(sfu.port).collect()}
    drops = families["sluice_sfu_media_drops"].samples
    assert [(sample.labels, sample.value) for sample in drops] == [({"reason": "unreadable"}, 1)]
    assert "sluice_sfu_media_forwarded" in families


class RunsPlane(ReferencePlane):
    """A plane with a thread, as far as the port can tell, that gives up sending runs when it is told to."""

    def __init__(self, send: Callable[[bytes, Address], None]) -> None:
        super().__init__(send=send)
        self.gso = True
        self.event_fd = os.eventfd(0)

    def start(self, fd: int) -> None: ...

    def stop(self) -> None:
        os.close(self.event_fd)

    def datagrams(self) -> list[tuple[bytes, Address]]:
        return []

    def streamed(self) -> list[tuple[bytes, Address]]:
        return []

    def sending(self) -> tuple[int, int, int, list[tuple[int, int]]]:
        return (5, 2, 1, [])


async def test_runs_that_are_given_up_are_logged_once_and_seen_in_the_metrics(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("sfu.shell.udp.CONSENT_EVERY_S", 0.01)
    port = MediaPort.open("127.0.0.1", 0, make_plane=RunsPlane, on_events=lambda events: None)

    def told() -> dict[str, float]:
        families = {family.name: family for family in MediaCollector(port).collect()}
        return {name: families[f"sluice_sfu_media_{name}"].samples[0].value for name in ("gso", "sends")}

    try:
        assert isinstance(port.plane, RunsPlane)
        assert told() == {"gso": 1, "sends": 5}
        ticks = 0

        def tick(*, now: float) -> None:
            nonlocal ticks
            ticks += 1

        monkeypatch.setattr(port.plane, "tick", tick)
        await until(lambda: ticks > 1)
        assert "GSO" not in caplog.text
        port.plane.gso = False
        await until(lambda: "UDP GSO is off" in caplog.text)
        ticks = 0
        await until(lambda: ticks > 3)
        assert caplog.text.count("UDP GSO is off") == 1
        assert told() == {"gso": 0, "sends": 5}
    finally:
        port.close()


@pytest.mark.process
async def test_a_peer_that_sends_media_but_no_checks_stays(sfu: Sfu, monkeypatch: pytest.MonkeyPatch) -> None:
    """As GStreamer does: it stops checking once a pair is nominated."""
    monkeypatch.setattr("sfu.core.ice_lite.CONSENT_S", 2.0)
    talker, talking = await sfu.connect()
    _, silent = await sfu.connect()
    report = rtcp.receiver_report(1, ())

    def silent_is_gone() -> bool:
        talker.send_rtcp(report)
        return silent.ended == [(PeerEnd.CONSENT_LOST, "")]

    await until(silent_is_gone)
    assert talking.ended == []


def test_what_the_readable_plane_has_to_do_at_once_is_scheduled_on_uvloop_too() -> None:
    """There a timer of no delay has no time of its own."""

    async def play() -> None:
        async with running(Sfu(plane=PlaneKind.REFERENCE)) as sfu:
            sfu.port.plane.next_deadline = lambda: 0.0  # type: ignore[method-assign]
            sfu.port._schedule()
            sfu.port._schedule()

    uvloop.run(play())
