"""The compiled plane with its own thread and real sockets, and what loads it."""

from __future__ import annotations

import os
import random
import select
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench.stats import resident_bytes
from sfu.config import SfuConfig
from sfu.plane import symbols
from sfu.plane.api import (
    ConsumerFlowing,
    ConsumerSpec,
    Event,
    PeerHeard,
    ProducerCodec,
    ProducerFlowing,
    ProducerSpec,
    SocketPlane,
)
from sfu.plane.choice import PlaneKind, make_plane
from sfu.plane.compiled import CompiledPlane
from sfu.plane.reference import ReferencePlane
from sfu.shell.udp import MediaPort
from shared.rtc import rtcp, rtp
from shared.rtc.demux import is_rtcp
from shared.rtc.srtp import SrtpKeys, SrtpProfile, SrtpSession
from tests.fakes.needed import need
from tests.fakes.plane_rig import LENGTHS, vp8_payload

VP8 = ProducerCodec(payload_type=96, name="VP8", clock_rate=90_000, rtx_payload_type=97)
WITHIN_S = 20.0


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.002)


class Peer:
    """A socket with keys."""

    def __init__(self, plane: CompiledPlane, number: int, profile: SrtpProfile, host: str) -> None:
        self.number = number
        self.sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        self.sock.bind((host, 0))
        self.sock.setblocking(False)
        rng = random.Random(number)
        key, salt = LENGTHS[profile]
        a, b, c, d = rng.randbytes(key), rng.randbytes(salt), rng.randbytes(key), rng.randbytes(salt)
        self.session = SrtpSession(SrtpKeys(profile, c, d, a, b))
        self.packets: list[tuple[rtp.RtpHeader, bytes]] = []
        self.reports = 0
        plane.add_peer(number)
        keys = SrtpKeys(profile, a, b, c, d)
        plane.set_keys(number, keys, address=self.sock.getsockname()[:2], now=time.monotonic())

    def receive(self) -> int:
        """All that has come, decrypted; how many media packets there have been."""
        while select.select([self.sock], [], [], 0)[0]:
            datagram = self.sock.recv(2048)
            if is_rtcp(datagram):
                rtcp.parse(self.session.unprotect_rtcp(datagram))
                self.reports += 1
                continue
            packet = self.session.unprotect(datagram)
            header = rtp.parse(packet)
            self.packets.append((header, packet[header.payload_start : header.payload_end]))
        return len(self.packets)


class Bench:
    """A started plane, a publisher (peer 1, producer 1) and viewers."""

    def __init__(self, *, viewers: int, profile: SrtpProfile, host: str = "127.0.0.1", gso: bool = True) -> None:
        self.sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        self.sock.bind((host, 0))
        self.plane = CompiledPlane(send=lambda datagram, address: None, gso=gso)
        self.plane.start(self.sock.fileno())
        self.told: list[Event] = []
        self.publisher = Peer(self.plane, 1, profile, host)
        self.viewers = [Peer(self.plane, 2 + number, profile, host) for number in range(viewers)]
        spec = ProducerSpec(producer=1, peer=1, kind="video", mid="1", codecs=(VP8,), extensions={4: rtp.MID_URI})
        assert self.plane.produce(spec, now=time.monotonic())
        for viewer in self.viewers:
            assert self.consume(viewer.number, viewer.number)
        self.sequence = 65_000

    def consume(self, consumer: int, peer: int) -> bool:
        spec = ConsumerSpec(
            consumer=consumer,
            peer=peer,
            producer=1,
            ssrc=10_000 + consumer,
            payload_type=100,
            codec="VP8",
            rtx_ssrc=20_000_000 + consumer,
            rtx_payload_type=101,
        )
        return self.plane.consume(spec, now=time.monotonic())

    def frame(self, sizes: list[int], *, key: bool = False) -> list[bytes]:
        payloads = []
        for number, size in enumerate(sizes):
            payload = vp8_payload(key=key, start=number == 0, body=random.randbytes(size))
            payloads.append(payload)
            packet = rtp.build(
                payload_type=96,
                sequence=self.sequence & 0xFFFF,
                timestamp=self.sequence * 100 & 0xFFFFFFFF,
                ssrc=10,
                payload=payload,
                marker=number == len(sizes) - 1,
                extension_elements=[(4, b"1")],
            )
            self.sequence += 1
            self.publisher.sock.sendto(self.publisher.session.protect(packet), self.sock.getsockname())
        return payloads

    def wait_for(self, count: int) -> None:
        """Until every viewer has had that many packets."""
        until(lambda: all(viewer.receive() == count for viewer in self.viewers))

    def hear(self) -> list[Event]:
        assert self.plane.datagrams() == []
        self.told += self.plane.events()
        return self.told

    def drops(self) -> dict[str, int]:
        return dict(self.plane.snapshot().totals.drops)


@contextmanager
def bench(
    *,
    viewers: int = 2,
    profile: SrtpProfile = SrtpProfile.AEAD_AES_128_GCM,
    host: str = "127.0.0.1",
    gso: bool = True,
) -> Iterator[Bench]:
    made = Bench(viewers=viewers, profile=profile, host=host, gso=gso)
    try:
        yield made
    finally:
        made.plane.stop()
        for sock in (made.sock, made.publisher.sock, *(viewer.sock for viewer in made.viewers)):
            sock.close()


async def test_the_sfu_runs_the_compiled_plane() -> None:
    port = MediaPort.open("127.0.0.1", 0, on_events=lambda events: None)
    try:
        assert isinstance(port.plane, CompiledPlane)
        assert isinstance(port.plane, SocketPlane)
    finally:
        port.close()
    assert SfuConfig().plane is PlaneKind.COMPILED


def test_the_reference_runs_when_asked_for_and_when_there_is_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(make_plane(lambda d, a: None, kind=PlaneKind.REFERENCE), ReferencePlane)
    monkeypatch.setitem(sys.modules, "sfu.plane.compiled", None)
    assert isinstance(make_plane(lambda d, a: None), ReferencePlane)


def test_without_exported_symbols_the_bindings_own_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(symbols.find_symbols()) == {*symbols.LIBSRTP, *symbols.LIBSRTP_UNBOUND, *symbols.LIBCRYPTO}
    monkeypatch.setattr(symbols, "_exported", lambda names: {})
    found = symbols.find_symbols()
    assert set(found) == set(symbols.LIBSRTP)
    assert all(found.values())


def test_a_binding_without_what_is_needed_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(symbols, "_exported", lambda names: {})
    monkeypatch.setattr(symbols, "LIBSRTP", ("srtp_protect", "srtp_of_tomorrow"))
    with pytest.raises(symbols.CryptoNotFound, match="srtp_of_tomorrow"):
        symbols.find_symbols()


@pytest.mark.parametrize("gso", [True, False], ids=["gso", "single"])
@pytest.mark.parametrize("profile", SrtpProfile)
def test_frames_reach_every_viewer_whole_and_in_order(profile: SrtpProfile, gso: bool) -> None:
    with bench(profile=profile, gso=gso) as b:
        sent: list[bytes] = []
        for number in range(40):
            # Sizes as an encoder makes them: nearly equal, and now and then a small one.
            sent += b.frame([1100 + number % 3 for _ in range(number % 8)] + [40 + number], key=number == 0)
            b.wait_for(len(sent))
        for viewer in b.viewers:
            assert [payload for _, payload in viewer.packets] == sent
            numbers = [header.sequence for header, _ in viewer.packets]
            assert [rtp.sequence_delta(number, numbers[0]) for number in numbers] == list(range(len(sent)))
        assert {PeerHeard(1), ProducerFlowing(1), ConsumerFlowing(2), ConsumerFlowing(3)} <= set(b.hear())
        assert b.drops() == {}


def test_a_frame_goes_out_as_one_run_although_its_packets_differ_by_a_byte() -> None:
    """A frame whose packets the publisher sends in time, on a busy machine not every one, with no report among them."""
    with bench(viewers=1) as b:
        need(b.plane.gso, "this kernel has no UDP GSO")
        (viewer,) = b.viewers
        b.frame([1000], key=True)
        packets = 1

        def all_sent() -> bool:
            """Also counted: each packet's delay is known once its send has returned."""
            return viewer.receive() == packets == sum(count for _, count in b.plane.sending()[3])

        def goes_as_one() -> bool:
            nonlocal packets
            until(all_sent)
            before = b.plane.sending()[0]
            packets += len(b.frame([1003, 1003, 1003, 1004, 1004]))
            until(all_sent)
            return b.plane.sending()[0] - before == 1

        until(goes_as_one)


def test_without_gso_each_packet_is_a_send() -> None:
    with bench(viewers=1, gso=False) as b:
        (viewer,) = b.viewers
        b.frame([1000] * 5, key=True)
        until(lambda: viewer.receive() == 5)
        assert b.plane.sending()[0] >= 5


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as sock:
            sock.bind(("::1", 0))
    except OSError:
        return False
    return True


def test_ipv6_peers_are_served() -> None:
    need(has_ipv6(), "no IPv6 on this machine's loopback interface")
    with bench(host="::1") as b:
        sent = b.frame([500, 500], key=True)
        until(lambda: all(viewer.receive() == 2 for viewer in b.viewers))
        assert [payload for _, payload in b.viewers[0].packets] == sent


def test_a_viewers_nack_is_answered_by_the_thread() -> None:
    with bench(viewers=1) as b:
        (viewer,) = b.viewers
        sent = b.frame([900] * 6, key=True)
        until(lambda: viewer.receive() == 6)
        lost = viewer.packets[3][0].sequence
        nack = viewer.session.protect_rtcp(rtcp.nack(sender=1, media=10_002, sequences=[lost]))
        viewer.sock.sendto(nack, b.sock.getsockname())
        until(lambda: viewer.receive() == 7)
        header, payload = viewer.packets[-1]
        assert (header.ssrc, header.payload_type) == (20_000_002, 101)
        assert payload == lost.to_bytes(2, "big") + sent[3]


def test_what_is_no_media_goes_to_python_with_its_source() -> None:
    with bench(viewers=1) as b, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        stranger.bind(("127.0.0.1", 0))
        for datagram in (b"\x00\x01" + bytes(30), b"\x16" * 40, b"", b"\xff" * 40, bytes(3000), b"\x80" * 40):
            stranger.sendto(datagram, b.sock.getsockname())
        until(lambda: b.drops() == {"unreadable": 3, "unknown-address": 1})
        assert select.select([b.plane.event_fd], [], [], WITHIN_S)[0]
        source = stranger.getsockname()
        assert b.plane.datagrams() == [(b"\x00\x01" + bytes(30), source), (b"\x16" * 40, source)]
        assert not select.select([b.plane.event_fd], [], [], 0)[0]


def test_peers_may_vanish_at_any_moment() -> None:
    """Consumers, producers and peers come and go while the publisher never stops; snapshots are taken meanwhile.

    Calls come one at a time, as the plane asks for; its own thread is where it happens to be.
    """
    with bench(viewers=8) as b, ThreadPoolExecutor(2) as pool:
        b.frame([1000], key=True)
        stop = threading.Event()
        turn = threading.Lock()

        def churn(first: int) -> int:
            rng = random.Random(first)
            number = first
            while not stop.is_set():
                number += 1
                with turn:
                    peer = Peer(b.plane, number, rng.choice(list(SrtpProfile)), "127.0.0.1")
                    assert b.consume(number, number)
                    assert b.consume(number + 500_000, rng.randrange(2, 10))
                with turn:
                    if rng.random() < 0.5:
                        b.plane.pause(number, True, now=time.monotonic())
                    b.plane.snapshot()
                with turn:
                    if rng.random() < 0.5:
                        b.plane.close_consumer(number)
                    b.plane.remove_peer(number)
                    b.plane.close_consumer(number + 500_000)
                peer.sock.close()
            return number - first

        came_and_went = [pool.submit(churn, 100_000 * (1 + index)) for index in range(2)]
        try:
            for number in range(150):
                b.frame([1000] * 7, key=number % 5 == 0)
                time.sleep(0.002)
        finally:
            stop.set()
        assert all(0 < future.result() < 100_000 for future in came_and_went)
        assert {peer.peer for peer in b.plane.snapshot().peers} == set(range(1, 10))
        assert {consumer.consumer for consumer in b.plane.snapshot().consumers} == set(range(2, 10))
        b.plane.close_producer(1)
        b.frame([1000])
        until(lambda: b.drops().get("unknown-ssrc", 0) >= 1)
        assert b.plane.snapshot().consumers == ()


@pytest.mark.process
def test_peers_that_are_gone_leave_no_memory_behind() -> None:
    """Of 10,000: not even a block of the smallest size each."""
    with bench(viewers=1) as b:
        rng = random.Random(1)

        def come_and_go(numbers: range) -> None:
            for number in numbers:
                profile = list(SrtpProfile)[number % len(SrtpProfile)]
                key, salt = (rng.randbytes(length) for length in LENGTHS[profile])
                b.plane.add_peer(number)
                keys = SrtpKeys(profile, key, salt, key, salt)
                b.plane.set_keys(number, keys, address=("127.0.0.1", 9), now=time.monotonic())
                assert b.consume(number, number)
                if number % 50 == 0:
                    b.frame([1000] * 7, key=True)
                b.plane.remove_peer(number)
            b.hear()

        come_and_go(range(10_000, 22_000))
        before = resident_bytes(os.getpid())
        come_and_go(range(22_000, 32_000))
        assert resident_bytes(os.getpid()) - before < 10_000 * 32


def test_starting_twice_is_refused_and_stopping_twice_is_not() -> None:
    with bench(viewers=1) as b:
        with pytest.raises(RuntimeError):
            b.plane.start(b.sock.fileno())
        b.plane.stop()
        b.plane.stop()
        assert b.plane.snapshot().peers


def test_a_plane_that_is_dropped_ends_its_thread() -> None:
    before = threads_of_planes()
    with bench(viewers=1) as b:
        assert threads_of_planes() == before + 1
        b.plane = CompiledPlane(send=lambda datagram, address: None)
        until(lambda: threads_of_planes() == before)


def threads_of_planes() -> int:
    names = []
    for task in Path("/proc/self/task").iterdir():
        try:
            names.append((task / "comm").read_text().strip())
        except OSError:
            continue
    return names.count("sluice-plane")
