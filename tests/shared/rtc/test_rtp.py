"""RTP headers and extensions: every well-formed packet is read back, nothing but `BadPacket` comes of the rest."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import BadPacket
from shared.rtc import rtp

elements_of_one_byte_form = st.lists(st.tuples(st.integers(1, 14), st.binary(min_size=1, max_size=16)), max_size=6)
elements_of_two_byte_form = st.lists(st.tuples(st.integers(1, 255), st.binary(max_size=40)), max_size=6)


@given(
    payload_type=st.integers(0, 127),
    sequence=st.integers(0, 0xFFFF),
    timestamp=st.integers(0, 0xFFFFFFFF),
    ssrc=st.integers(0, 0xFFFFFFFF),
    payload=st.binary(max_size=100),
    marker=st.booleans(),
    elements=elements_of_one_byte_form | elements_of_two_byte_form,
    padding=st.integers(0, 255),
)
def test_what_is_built_is_read_back(
    payload_type: int,
    sequence: int,
    timestamp: int,
    ssrc: int,
    payload: bytes,
    marker: bool,
    elements: list[tuple[int, bytes]],
    padding: int,
) -> None:
    packet = rtp.build(
        payload_type=payload_type,
        sequence=sequence,
        timestamp=timestamp,
        ssrc=ssrc,
        payload=payload,
        marker=marker,
        extension_elements=elements,
        padding=padding,
    )
    header = rtp.parse(packet)
    assert (header.payload_type, header.sequence, header.timestamp) == (payload_type, sequence, timestamp)
    assert (header.ssrc, header.marker) == (ssrc, marker)
    assert packet[header.payload_start : header.payload_end] == payload
    assert [(number, packet[start:end]) for number, start, end in rtp.walk_extensions(packet, header)] == elements


@given(st.binary(max_size=200) | st.binary(max_size=200).map(lambda tail: b"\x90\x60" + tail))
def test_only_bad_packet_escapes_and_offsets_stay_inside(packet: bytes) -> None:
    with contextlib.suppress(BadPacket):
        header = rtp.parse(packet)
        assert 12 <= header.payload_start <= header.payload_end <= len(packet)
        for _, start, end in rtp.walk_extensions(packet, header):
            assert header.extension_start < start <= end <= header.extension_end


HEAD = bytes.fromhex("0001 00000002 00000003")


@pytest.mark.parametrize(
    ("packet", "detail"),
    [
        (b"", "too short"),
        (b"\x80\x60" + HEAD[:-1], "too short"),
        (b"\x40\x60" + HEAD, "version"),
        (b"\x81\x60" + HEAD, "longer than the packet"),
        (b"\x90\x60" + HEAD + b"\xbe\xde", "truncated header extension"),
        (b"\x90\x60" + HEAD + b"\xbe\xde\x00\x01", "longer than the packet"),
        (b"\xa0\x60" + HEAD + b"\x00", "padding of length 0"),
        (b"\xa0\x60" + HEAD + b"\x02", "longer than the packet"),
    ],
)
def test_truncated_packets_are_refused(packet: bytes, detail: str) -> None:
    with pytest.raises(BadPacket, match=detail):
        rtp.parse(packet)


def test_contributing_sources_are_skipped() -> None:
    header = rtp.parse(b"\x82\x60" + HEAD + bytes(8) + b"payload")
    assert header.payload_start == 20


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ("bede0001 10aa0000", {1: b"\xaa"}),
        ("bede0001 000010aa", {1: b"\xaa"}),
        ("bede0001 f0aa10bb", {}),
        ("bede0001 1faabbcc", {}),
        ("bede0002 10aa2fbb ccddeeff", {1: b"\xaa"}),
        ("10000001 0101aa00", {1: b"\xaa"}),
        ("100f0001 00010000", {1: b""}),
        ("10000001 0109aabb", {}),
        ("12340001 10aabbcc", {}),
    ],
    ids=[
        "one-byte",
        "padding before",
        "id 15 ends",
        "longer than the block",
        "what came before a broken one stands",
        "two-byte",
        "two-byte empty, with application bits",
        "two-byte longer than the block",
        "unknown profile",
    ],
)
def test_extension_forms(block: str, expected: dict[int, bytes]) -> None:
    packet = b"\x90\x60" + HEAD + bytes.fromhex(block)
    assert rtp.extensions(packet, rtp.parse(packet)) == expected


@pytest.mark.parametrize(
    ("newer", "older", "delta"),
    [(1, 0, 1), (0, 65535, 1), (65535, 0, -1), (32767, 0, 32767), (32768, 0, -32768), (5, 5, 0)],
)
def test_sequence_numbers_wrap(newer: int, older: int, delta: int) -> None:
    assert rtp.sequence_delta(newer, older) == delta


def test_timestamps_wrap() -> None:
    assert rtp.timestamp_delta(2, 0xFFFFFFFF) == 3
    assert rtp.timestamp_delta(0xFFFFFFFF, 2) == -3


def test_abs_send_time_counts_quarter_million_to_the_second_and_wraps() -> None:
    assert rtp.abs_send_time(1.0) == (1 << 18).to_bytes(3, "big")
    assert rtp.abs_send_time(64.0) == rtp.abs_send_time(0.0)
