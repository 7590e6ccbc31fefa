"""Media over TCP on a real port: calls that use both, strangers, broken frames, and readers that do not read."""

from __future__ import annotations

import asyncio
import errno
import socket
import time

import pytest

from sfu.core import streams
from sfu.core.streams import StreamEnd, stream_address
from sfu.plane.api import ProducerFlowing
from sfu.plane.choice import PlaneKind
from sfu.shell.media_metrics import MediaCollector
from sfu.shell.streams import STREAM_FULL, STREAM_GONE, MediaStreams, listen_for_streams
from shared.rtc import rtcp
from shared.rtc.framing import framed
from tests.fakes.rtc_peer import until
from tests.sfu.shell.test_media_port import Sfu, packet, running


def streams_of(sfu: Sfu) -> MediaStreams:
    assert sfu.port.streams is not None
    return sfu.port.streams


async def stranger(sfu: Sfu) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", streams_of(sfu).port)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
@pytest.mark.parametrize("plane", PlaneKind)
async def test_both_directions_of_a_call_go_over_tcp_and_udp_at_once(plane: PlaneKind, host: str) -> None:
    async with running(Sfu("::" if ":" in host else host, plane, tcp=True)) as sfu:
        publisher, source = await sfu.connect_tcp(host=host)
        viewers = [await sfu.connect_tcp(host=host), await sfu.connect(host=host)]
        sfu.publish(source)
        for number, (_, side) in enumerate(viewers):
            sfu.subscribe(side, number + 1)
        for number in range(60):
            publisher.send_rtp(packet(number))
            if number % 10 == 0:
                await asyncio.sleep(0.01)
        for viewer, _ in viewers:
            await until(lambda viewer=viewer: len(viewer.received) == 60)  # type: ignore[misc]
            assert viewer.payloads() == [packet(number)[-1007:] for number in range(60)]
        await until(lambda: ProducerFlowing(1) in sfu.events)
        await until(lambda: bool(publisher.feedback))
        viewer = viewers[0][0]
        viewer.send_rtcp(rtcp.nack(sender=1, media=701, sequences=[viewer.headers()[4].sequence]))
        await until(lambda: len(viewer.received) == 61)
        assert sfu.port.plane.address_of(source.transport.peer) == stream_address(*publisher.address, 1)
        families = {family.name: family for family in MediaCollector(sfu.port).collect()}
        assert families["sluice_sfu_media_tcp_connections"].samples[0].value == 2
    assert streams_of(sfu).count == 0, "they go with their peers"


async def test_a_player_whose_udp_is_cut_goes_on_over_tcp_and_back() -> None:
    async with running(Sfu(tcp=True)) as sfu:
        publisher, source = await sfu.connect()
        client, side = await sfu.connect()
        other = await sfu.tcp_client()
        credentials = side.transport.credentials
        sfu.publish(source)
        sfu.subscribe(side, 1)
        await other.check(credentials.ufrag, credentials.pwd)
        other.session = client.session
        number = 0

        async def sent_to(peer: object) -> None:
            nonlocal number
            before = len(client.received), len(other.received)
            async with asyncio.timeout(20):
                while len(client.received if peer is client else other.received) == before[peer is other]:
                    publisher.send_rtp(packet(number))
                    assert client.session is not None
                    talking = other if peer is other else client
                    talking.send_rtcp(rtcp.receiver_report(1, []))
                    number += 1
                    await asyncio.sleep(0.05)

        await sent_to(client)
        await sent_to(other)
        await sent_to(client)


async def test_the_same_host_and_port_is_another_address_by_udp() -> None:
    async with running(Sfu(tcp=True)) as sfu:
        client, side = await sfu.connect_tcp()
        assert sfu.port.plane.peer_at(stream_address(*client.address, 1)) == side.transport.peer
        assert sfu.port.plane.peer_at(client.address) is None
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.bind(client.address)
            sock.sendto(b"\x16\xfe\xfd" + bytes(40), sfu.port.address)
            await until(lambda: sfu.port.drops["dtls-unknown-address"] == 1)


@pytest.mark.parametrize(
    ("sent", "end"),
    [
        (framed(b"\x16\xfe\xfd" + bytes(40)), StreamEnd.NO_CHECK),
        (framed(b"\x80" + bytes(40)), StreamEnd.NO_CHECK),
        (framed(b"\x00\x01" + bytes(30)), StreamEnd.NO_CHECK),
        (framed(b"x"), StreamEnd.NO_CHECK),
        (b"GET / HTTP/1.1\r\n\r\n", StreamEnd.BAD_FRAME),
        (b"\xff\xff" + bytes(100), StreamEnd.BAD_FRAME),
        (bytes(100_000), StreamEnd.NO_CHECK),
    ],
    ids=["DTLS", "media", "no STUN", "short", "HTTP", "65535", "empty frames"],
)
async def test_a_stranger_that_shows_no_check_is_cut_off_at_once(sent: bytes, end: StreamEnd) -> None:
    async with running(Sfu(tcp=True)) as sfu:
        reader, writer = await stranger(sfu)
        writer.write(sent)
        assert await asyncio.wait_for(_all_of(reader), 5) == b""
        assert sfu.port.drops[end] == 1
        assert streams_of(sfu).count == 0
        writer.close()


async def _all_of(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""  # there were bytes that we had not read when we closed


async def test_a_check_with_a_wrong_password_opens_nothing() -> None:
    async with running(Sfu(tcp=True)) as sfu:
        side, client = sfu.side(), await sfu.tcp_client()
        client.send_raw(client.request(side.transport.credentials.ufrag, "wrong" * 6))
        await asyncio.wait_for(client.cut_off.wait(), 5)
        assert sfu.port.drops["stun-bad-integrity"] == 1


async def test_a_silent_or_a_slow_stranger_is_cut_off_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "FIRST_CHECK_WITHIN_S", 0.2)
    monkeypatch.setattr("sfu.shell.udp.CONSENT_EVERY_S", 0.1)
    async with running(Sfu(tcp=True)) as sfu:
        player, _ = await sfu.connect_tcp()
        silent, slow = await stranger(sfu), await stranger(sfu)
        slow[1].write(framed(bytes(30))[:20])
        for reader, writer in (silent, slow):
            assert await asyncio.wait_for(_all_of(reader), 5) == b""
            writer.close()
        assert sfu.port.drops[StreamEnd.NO_CHECK] == 2
        assert not player.cut_off.is_set()


async def test_strangers_of_one_address_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MAX_STRANGERS_OF_ADDRESS", 3)
    async with running(Sfu(tcp=True)) as sfu:
        player, _ = await sfu.connect_tcp()
        held = [await stranger(sfu) for _ in range(5)]
        await until(lambda: sfu.port.drops[StreamEnd.TOO_MANY] == 2)
        assert streams_of(sfu).count == 4
        assert not player.cut_off.is_set()
        for _, writer in held:
            writer.close()
        await until(lambda: streams_of(sfu).count == 1)
        await sfu.connect_tcp()


@pytest.mark.parametrize("plane", PlaneKind)
async def test_a_reader_that_does_not_read_slows_no_other_and_gets_what_is_new_later(plane: PlaneKind) -> None:
    async with running(Sfu(plane=plane, tcp=True)) as sfu:
        publisher, source = await sfu.connect()
        deaf, deaf_side = await sfu.connect_tcp()
        viewer, viewer_side = await sfu.connect_tcp()
        sfu.publish(source)
        sfu.subscribe(deaf_side, 1)
        sfu.subscribe(viewer_side, 2)
        deaf.pipe.pause_reading()
        number = 0
        deadline = time.monotonic() + 60
        while not sfu.port.drops[STREAM_FULL]:
            assert time.monotonic() < deadline
            for _ in range(50):
                publisher.send_rtp(packet(number))
                number += 1
            await asyncio.sleep(0.01)
        await until(lambda: len(viewer.received) >= 0.9 * number)
        deaf.pipe.resume_reading()
        before = len(deaf.received)
        await until(lambda: len(deaf.received) > before)
        await asyncio.sleep(0.2)
        marked = packet(number)
        for _ in range(3):
            publisher.send_rtp(packet(number))
            number += 1
        await until(lambda: marked[-1007:] in deaf.payloads()[-3:])
        assert len(deaf.received) < len(viewer.received)


async def test_what_is_sent_to_a_closed_connection_is_counted() -> None:
    async with running(Sfu(tcp=True)) as sfu:
        publisher, source = await sfu.connect()
        viewer, side = await sfu.connect_tcp()
        sfu.publish(source)
        sfu.subscribe(side, 1)
        viewer.pipe.abort()
        await until(lambda: streams_of(sfu).count == 0)
        publisher.send_rtp(packet(0))
        await until(lambda: sfu.port.drops[STREAM_GONE] > 0)


async def test_without_files_it_waits_and_takes_those_who_waited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfu.shell.streams.ACCEPT_AGAIN_S", 0.05)

    class NoFiles(socket.socket):
        failures = 0

        def accept(self) -> tuple[socket.socket, object]:
            if self.failures < 2:
                self.failures += 1
                raise OSError(errno.EMFILE, "too many open files")
            return super().accept()

    listening = listen_for_streams("127.0.0.1", 0)
    drops: dict[str, int] = {}
    short = NoFiles(fileno=listening.detach())
    short.setblocking(False)
    media = MediaStreams(short, receive=lambda datagrams, address: None, drops=drops)  # type: ignore[arg-type]
    _, writer = await asyncio.open_connection("127.0.0.1", media.port)
    await until(lambda: media.count == 1)
    writer.close()
    media.close()
