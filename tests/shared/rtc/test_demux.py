"""Datagrams are sorted by their first byte."""

from __future__ import annotations

import pytest

from shared.rtc.demux import MAX_DATAGRAM, Traffic, classify, is_rtcp


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        (0, Traffic.STUN),
        (3, Traffic.STUN),
        (4, Traffic.OTHER),
        (16, Traffic.OTHER),
        (19, Traffic.OTHER),
        (20, Traffic.DTLS),
        (63, Traffic.DTLS),
        (64, Traffic.OTHER),
        (127, Traffic.OTHER),
        (128, Traffic.MEDIA),
        (191, Traffic.MEDIA),
        (192, Traffic.OTHER),
        (255, Traffic.OTHER),
    ],
)
def test_first_byte_decides(first: int, expected: Traffic) -> None:
    assert classify(bytes((first,)) * 20) is expected


@pytest.mark.parametrize("size", [0, 1, 11, MAX_DATAGRAM + 1, 65_507])
def test_sizes_that_no_peer_has_reason_to_send_are_nothing(size: int) -> None:
    assert classify(b"\x80" * size) is Traffic.OTHER


@pytest.mark.parametrize(("second", "expected"), [(191, False), (192, True), (200, True), (223, True), (224, False)])
def test_rtcp_is_told_by_its_type(second: int, expected: bool) -> None:
    assert is_rtcp(bytes((128, second))) is expected
