"""Frames on a stream: whatever the pieces, the datagrams come out as they went in."""

from __future__ import annotations

import contextlib
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import BadPacket
from shared.rtc.demux import MAX_DATAGRAM
from shared.rtc.framing import Deframer, framed


@given(
    datagrams=st.lists(st.binary(min_size=1, max_size=MAX_DATAGRAM), max_size=12),
    empty=st.integers(0, 3),
    seed=st.integers(0, 1 << 32),
)
def test_datagrams_survive_any_cut(datagrams: list[bytes], empty: int, seed: int) -> None:
    rng = random.Random(seed)
    stream = b"".join(framed(datagram) + framed(b"") * empty for datagram in datagrams)
    deframer, found, at = Deframer(), [], 0
    while at < len(stream):
        step = rng.choice((1, 2, 3, 700, 5000))
        found += deframer.feed(stream[at : at + step])
        at += step
    assert found == datagrams
    assert len(deframer._rest) == 0


@pytest.mark.parametrize("length", [MAX_DATAGRAM + 1, 18_245, 65_535])
def test_a_datagram_longer_than_any_ends_the_stream(length: int) -> None:
    with pytest.raises(BadPacket, match=f"a datagram of {length} bytes"):
        Deframer().feed(length.to_bytes(2, "big"))


def test_what_is_unfinished_is_bounded() -> None:
    deframer = Deframer()
    assert deframer.feed(MAX_DATAGRAM.to_bytes(2, "big")) == []
    for _ in range(MAX_DATAGRAM - 1):
        assert deframer.feed(b"x") == []
    assert len(deframer._rest) == 2 + MAX_DATAGRAM - 1
    assert deframer.feed(b"xx") == [b"x" * MAX_DATAGRAM]


@given(st.lists(st.binary(max_size=80), max_size=20))
def test_no_bytes_break_it(pieces: list[bytes]) -> None:
    deframer = Deframer()
    with contextlib.suppress(BadPacket):
        for piece in pieces:
            assert all(0 < len(datagram) <= MAX_DATAGRAM for datagram in deframer.feed(piece))
