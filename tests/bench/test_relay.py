"""The relay benchmark measures what it says: a small run, and the arithmetic of its figures."""

from __future__ import annotations

import socket
import struct

import pytest

from bench.relay import loss, measure, quantile
from bench.relay_load import FIRST_HOST, IP_PKTINFO
from bench.relay_workloads import WORKLOADS, webcam
from bench.sink import Sink
from shared.rtc import rtp


@pytest.mark.integration
@pytest.mark.parametrize("profile", ["gcm", "cm"])
async def test_a_small_fanout_arrives_whole(profile: str) -> None:
    figures = await measure(
        WORKLOADS["fanout"], subscribers=3, seconds=1.5, profile=profile, plane="compiled", gso=True
    )
    assert figures.verified > 100, "the watched subscriber decrypted what was published, in order"
    assert figures.loss < 0.5
    assert figures.packets_out_per_s > 0
    assert 0 < figures.cpu_us_per_packet == pytest.approx(figures.cpu_us_user + figures.cpu_us_sys)


def test_loss_counts_only_what_flowed_at_both_readings() -> None:
    before = [(0, 7, 100, 0, 1099, 0)]
    after = [(0, 7, 190, 0, 1199, 0), (1, 8, 5, 0, 5000, 0)]
    assert loss(before, after) == pytest.approx(0.1)


def test_quantile_is_of_the_difference() -> None:
    first = [[100, 50]]
    last = [[100, 50], [1000, 98], [8000, 2]]
    assert quantile(first, last, 0.5) == 1.0
    assert quantile(first, last, 0.99) == 8.0


def test_webcam_frames_differ_by_a_byte() -> None:
    frames = [webcam() for _ in range(300)]
    assert all(max(sizes) - min(sizes) <= 1 for sizes in frames)
    assert sum(map(len, frames)) / 300 == pytest.approx(4.8, abs=0.5)


def test_sink_tells_subscribers_apart_and_counts_what_is_missing() -> None:
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out,
    ):
        sock.setsockopt(socket.IPPROTO_IP, IP_PKTINFO, 1)
        sock.bind(("0.0.0.0", 0))
        sock.setblocking(False)
        port = sock.getsockname()[1]
        sink = Sink(sock.fileno(), FIRST_HOST, 2, 1)
        for number, sequences in enumerate([(65534, 65535, 1), (5, 4)]):
            host = socket.inet_ntoa(struct.pack("!I", FIRST_HOST + number))
            for sequence in sequences:
                packet = rtp.build(payload_type=96, sequence=sequence, timestamp=0, ssrc=9 + number, payload=b"x")
                out.sendto(packet, (host, port))
        out.sendto(b"\x16" * 20, (socket.inet_ntoa(struct.pack("!I", FIRST_HOST + 1)), port))
        raws = []
        while len(raws) < 4:
            raws += sink.poll(0.2)
        assert [host - FIRST_HOST for host, _ in raws] == [0, 0, 0, 1], "all of the watched one, and what is no media"
        first, second = sink.flows()
        assert (first[0], first[1], first[2], first[5]) == (0, 9, 3, 0)
        assert (second[0], second[2], second[5]) == (1, 2, 1), "one came out of order"
