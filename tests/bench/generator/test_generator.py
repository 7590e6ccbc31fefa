"""The compiled load generator: what it receives and what it sends."""

from __future__ import annotations

import os
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bench.generator.compiled import Generator, send_floor
from bench.relay.load import FIRST_HOST, IP_PKTINFO
from shared.rtc import rtp
from shared.rtc.srtp import SrtpKeys, SrtpProfile, SrtpSession

WITHIN_S = 20.0


def host(number: int) -> str:
    return socket.inet_ntoa(struct.pack("!I", FIRST_HOST + number))


@contextmanager
def running(*, hosts: int, watched: int, gso: bool = False, gro: bool = False) -> Iterator[tuple[Generator, int]]:
    """A generator, and its port."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.setsockopt(socket.IPPROTO_IP, IP_PKTINFO, 1)
        sock.bind(("0.0.0.0", 0))
        sock.setblocking(False)
        generator = Generator(sock.fileno(), FIRST_HOST, hosts, watched, gso=gso, gro=gro)
        thread = threading.Thread(target=generator.run)
        thread.start()
        try:
            yield generator, sock.getsockname()[1]
        finally:
            generator.stop()
            thread.join()


def media(number: int, sequence: int) -> bytes:
    return rtp.build(payload_type=96, sequence=sequence, timestamp=0, ssrc=9 + number, payload=b"x")


def keys(profile: SrtpProfile) -> tuple[SrtpKeys, SrtpKeys]:
    """Of two sides."""
    salt_bytes = 14 if profile is SrtpProfile.AES128_CM_SHA1_80 else 12
    one, other = ((os.urandom(16), os.urandom(salt_bytes)) for _ in range(2))
    return SrtpKeys(profile, *one, *other), SrtpKeys(profile, *other, *one)


def test_subscribers_are_told_apart_and_what_is_missing_is_counted() -> None:
    with running(hosts=2, watched=1) as (generator, port), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        for number, sequences in enumerate([(65534, 65535, 1), (5, 4)]):
            for sequence in sequences:
                out.sendto(media(number, sequence), (host(number), port))
        out.sendto(b"\x16" * 20, (host(1), port))
        out.sendto(media(5, 1), (host(5), port))
        raws: list[tuple[int, bytes]] = []
        deadline = time.monotonic() + WITHIN_S
        while (len(raws) < 4 or not generator.overlooked) and time.monotonic() < deadline:
            raws += generator.datagrams()
        assert [one - FIRST_HOST for one, _ in raws] == [0, 0, 0, 1], "all of the watched one, and what is no media"
        first, second = generator.flows()
        assert (first[0], first[1], first[2], first[5]) == (0, 9, 3, 3)
        assert first[4] - 0x10000 == 65537, "three of four came: the highest is two past the first"
        assert (second[0], second[2], second[5]) == (1, 2, 2), "one came out of order"
        assert generator.overlooked == 1, "media without a subscriber"


def test_only_what_was_published_counts_as_fresh_and_only_once() -> None:
    with running(hosts=1, watched=1) as (generator, port), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        for sequence in (100, 101, 101, 100, 99, 99, 170, 171, 108, 107, 171):
            out.sendto(media(0, sequence), (host(0), port))
        out.sendto(rtp.build(payload_type=97, sequence=172, timestamp=0, ssrc=9, payload=b"x"), (host(0), port))
        deadline = time.monotonic() + WITHIN_S
        while sum(flow[2] for flow in generator.flows()) < 12 and time.monotonic() < deadline:
            time.sleep(0.002)
        (flow,) = generator.flows()
        assert flow[2] == 12
        assert flow[5] == 6, "100, 101, 99, 170, 171, 108: 107 is 64 late, 97 is no published payload type"


def test_a_train_is_taken_apart() -> None:
    with running(hosts=1, watched=1, gro=True) as (generator, port):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
            run = media(0, 1) + media(0, 2) + media(0, 3)[:-1]
            segment = [(socket.SOL_UDP, 103, struct.pack("=H", len(media(0, 1))))]  # 103: UDP_SEGMENT
            out.sendmsg([run], segment, 0, (host(0), port))
        raws: list[tuple[int, bytes]] = []
        deadline = time.monotonic() + WITHIN_S
        while len(raws) < 3 and time.monotonic() < deadline:
            raws += generator.datagrams()
        assert [len(one) for _, one in raws] == [13, 13, 12]


@pytest.mark.parametrize("gso", [False, True])
@pytest.mark.parametrize("profile", [SrtpProfile.AEAD_AES_128_GCM, SrtpProfile.AES128_CM_SHA1_80])
def test_frames_are_real_srtp_in_order_and_in_time(profile: SrtpProfile, gso: bool) -> None:
    ours, theirs = keys(profile)
    session = SrtpSession(theirs)
    with (
        running(hosts=1, watched=0, gso=gso) as (generator, _),
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server,
    ):
        server.bind(("127.0.0.1", 0))
        server.settimeout(WITHIN_S)
        publisher = generator.add_publisher(FIRST_HOST + 7, server.getsockname(), ours)
        generator.add_track(
            publisher,
            ssrc=42,
            payload_type=96,
            mid="v",
            sequence=0xFFFE,
            first_frame=10,
            interval_ns=5_000_000,
            phase_ns=0,
            frames=[[1000, 1000, 900], [500]],
        )
        generator.go()
        packets = []
        for _ in range(8):
            datagram, (source, _) = server.recvfrom(2048)
            assert source == host(7)
            packets.append(session.unprotect(datagram))
    headers = [rtp.parse(packet) for packet in packets]
    assert [header.sequence for header in headers] == [0xFFFE, 0xFFFF, 0, 1, 2, 3, 4, 5], "over the wrap"
    assert [header.marker for header in headers] == [False, False, True, True] * 2
    assert [header.timestamp // 3000 for header in headers] == [10, 10, 10, 11, 12, 12, 12, 13]
    payloads = [packet[header.payload_start :] for packet, header in zip(packets, headers, strict=True)]
    assert [len(payload) for payload in payloads] == [1000, 1000, 900, 500] * 2
    assert [payload[-8:] for payload in payloads] == [b"body" + number.to_bytes(4, "big") for number in range(8)]
    assert rtp.extensions(packets[0], headers[0])[4] == b"v"
    assert generator.sent()[0] >= 8


def test_who_is_held_sends_nothing_until_told_and_goes_on_where_it_stopped() -> None:
    ours, _ = keys(SrtpProfile.AEAD_AES_128_GCM)
    with (
        running(hosts=1, watched=0) as (generator, _),
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server,
    ):
        server.bind(("127.0.0.1", 0))
        server.settimeout(WITHIN_S)
        publisher = generator.add_publisher(FIRST_HOST + 7, server.getsockname(), ours)
        track = {"payload_type": 96, "mid": "v", "sequence": 0, "first_frame": 10, "frames": [[500]]}
        generator.add_track(publisher, ssrc=1, interval_ns=20_000_000, phase_ns=0, **track)
        generator.add_track(publisher, ssrc=2, interval_ns=10**15, phase_ns=10**15, **track)
        assert generator.sent_by() == {1: 0, 2: 0}
        generator.go()
        server.recv(2048)
        generator.hold()
        sent = generator.sent_by()
        assert sent[1] == generator.sent()[0] > 0
        assert sent[2] == 0
        for _ in range(sent[1] - 1):
            server.recv(2048)
        server.settimeout(0.1)
        with pytest.raises(TimeoutError):
            server.recv(2048)
        assert generator.sent_by() == sent
        server.settimeout(WITHIN_S)
        generator.go()
        assert rtp.parse(server.recv(2048)).sequence == sent[1]


def test_a_track_that_can_not_be_sent_is_refused() -> None:
    ours, _ = keys(SrtpProfile.AEAD_AES_128_GCM)
    track = {"ssrc": 1, "payload_type": 96, "mid": "v", "sequence": 0, "first_frame": 0, "phase_ns": 0}
    with running(hosts=1, watched=0) as (generator, _):
        with pytest.raises(ValueError, match="no publisher"):
            generator.add_track(0, interval_ns=1, frames=[[100]], **track)
        publisher = generator.add_publisher(FIRST_HOST, ("127.0.0.1", 9), ours)
        for frames, interval_ns in (([[2000]], 1), ([[5]], 1), ([], 1), ([[100]], 0)):
            with pytest.raises(ValueError):
                generator.add_track(publisher, interval_ns=interval_ns, frames=frames, **track)


def test_the_floor_sends_every_run_to_everybody() -> None:
    with running(hosts=3, watched=0) as (generator, port), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        streams = [(20_000_000, 0, 3000, [[1000, 1000]], [0, 2]), (10_000_000, 0, 960, [[80]], [1])]
        packets, sends, refused = send_floor(out.fileno(), FIRST_HOST, port, streams, 0.2, gso=True, overhead=40)
        assert packets > sends > 0
        assert refused == 0
        deadline = time.monotonic() + WITHIN_S
        while sum(flow[2] for flow in generator.flows()) < packets and time.monotonic() < deadline:
            time.sleep(0.01)
        flows = {flow[0]: flow for flow in generator.flows()}
        assert flows[0][2] == flows[2][2] > 0
        assert flows[0][3] == 1040 * flows[0][2]
        assert flows[1][3] == 120 * flows[1][2]
        assert all(flow[4] - 0x10000 + 1 == flow[2] for flow in flows.values()), "nothing is missing"


def test_frames_are_found_again_where_the_server_began_timestamps_at_zero() -> None:
    """Two tracks that are told apart by timestamps, of which the first is silent: what begins at 0 seems its."""
    ours, _ = keys(SrtpProfile.AEAD_AES_128_GCM)
    with (
        running(hosts=1, watched=0) as (generator, port),
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server,
    ):
        server.bind(("127.0.0.1", 0))
        server.settimeout(WITHIN_S)
        publisher = generator.add_publisher(FIRST_HOST + 7, server.getsockname(), ours)
        track = {"payload_type": 96, "mid": "v", "sequence": 0, "first_frame": 10, "frames": [[500]]}
        generator.add_track(publisher, ssrc=1, interval_ns=10**12, phase_ns=10**12, **track)
        first = generator.add_track(publisher, ssrc=2, interval_ns=10**9, phase_ns=0, **track)
        generator.shift(0, 9, first)
        generator.go()
        frame = rtp.parse(server.recv(2048))
        assert frame.timestamp == first
        told = struct.pack("!BBHII", 0x80, 96, 1, frame.timestamp - first, 9) + b"x"
        server.sendto(told, (host(0), port))
        deadline = time.monotonic() + WITHIN_S
        while not generator.flows() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert sum(count for _, count in generator.arrivals()) == 1
        assert generator.untimed == 0
        with pytest.raises(ValueError, match="no subscriber"):
            generator.shift(1, 9, first)
