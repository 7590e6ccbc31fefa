"""VP8 frames into packets and back, whatever the network does to them."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from player.core.frames import MAX_CHUNK, MAX_PENDING, Assembler, chunks, descriptor
from shared.errors import BadPacket
from shared.rtc import vp8

KEY, INTER = b"\x00", b"\x01"
Packet = tuple[int, int, bool, bytes]


def frame(number: int, *, key: bool = False, size: int = 10) -> bytes:
    return (KEY if key else INTER) + number.to_bytes(4, "big") + bytes(size)


def packets(frames: list[bytes], *, sequence: int = 65_530, timestamp: int = 2**32 - 9000) -> list[Packet]:
    out: list[Packet] = []
    for number, data in enumerate(frames):
        parts = chunks(data)
        for position, part in enumerate(parts):
            payload = descriptor(number, first=position == 0) + part
            stamp = (timestamp + 4500 * number) & 0xFFFFFFFF
            out.append((sequence & 0xFFFF, stamp, position == len(parts) - 1, payload))
            sequence += 1
    return out


def assembled(arrivals: list[Packet]) -> list[bytes]:
    assembler = Assembler()
    return [data for arrival in arrivals for _, data in assembler.add(*arrival)]


FRAMES = [frame(n, key=n % 5 == 0, size=3000 if n % 5 == 0 else 200) for n in range(15)]


def test_frames_come_back_as_they_were_across_both_wraps() -> None:
    assert assembled(packets(FRAMES)) == FRAMES


def test_the_descriptor_is_what_the_sfu_reads() -> None:
    first = vp8.parse(descriptor(0x1234, first=True) + FRAMES[0])
    assert (first.picture_id, first.keyframe_start, first.length) == (0x1234, True, 4)
    assert not vp8.parse(descriptor(1, first=False) + FRAMES[0]).keyframe_start


def test_nothing_is_shown_before_a_key_frame() -> None:
    assert assembled(packets(FRAMES[2:])) == FRAMES[5:]


def test_after_a_loss_nothing_is_shown_until_the_next_key_frame() -> None:
    arrivals = packets(FRAMES)
    lost = next(n for n, arrival in enumerate(arrivals) if arrival[3].endswith(FRAMES[2]))
    assert assembled(arrivals[:lost] + arrivals[lost + 1 :]) == [*FRAMES[:2], *FRAMES[5:]]


def test_a_late_repair_releases_what_waited_for_it() -> None:
    arrivals = packets(FRAMES[:5])
    late = arrivals.pop(4)
    assert assembled([*arrivals, late]) == FRAMES[:5]


def test_duplicates_change_nothing() -> None:
    assert assembled([packet for packet in packets(FRAMES) for _ in range(2)]) == FRAMES


@given(st.randoms(use_true_random=False))
def test_small_disorder_changes_nothing(rng: random.Random) -> None:
    arrivals = packets(FRAMES)
    order = sorted(range(1, len(arrivals)), key=lambda position: position + rng.uniform(0, 3))
    # The very first packet decides where the stream begins.
    assert assembled([arrivals[0], *(arrivals[position] for position in order)]) == FRAMES


@given(st.lists(st.booleans(), min_size=60, max_size=60))
def test_whatever_is_lost_only_decodable_frames_come_out(kept: list[bool]) -> None:
    arrivals = packets([frame(n, key=n % 4 == 0, size=50) for n in range(60)])
    out = assembled([arrival for arrival, keep in zip(arrivals, kept, strict=True) if keep])
    numbers = [int.from_bytes(data[1:5], "big") for data in out]
    for before, after in zip([None, *numbers], numbers, strict=False):
        assert after % 4 == 0 or after - 1 == before


def test_a_long_hole_makes_it_ask_for_a_key_frame() -> None:
    assembler = Assembler()
    assert assembler.wants_key
    arrivals = packets([frame(n, key=n == 0) for n in range(MAX_PENDING + 5)])
    list(assembler.add(*arrivals[0]))
    assert not assembler.wants_key
    for arrival in arrivals[2:]:
        assert list(assembler.add(*arrival)) == []
    assert assembler.wants_key


@pytest.mark.parametrize("payload", [b"", b"\x90", b"\x90\x80", b"\x90\x80\x80", b"\x10", b"\x90\x80\x80\x01"])
def test_a_truncated_payload_is_a_bad_packet(payload: bytes) -> None:
    with pytest.raises(BadPacket):
        Assembler().add(1, 1, True, payload)


@given(st.lists(st.tuples(st.integers(0, 65535), st.integers(0, 2**32 - 1), st.booleans(), st.binary(max_size=40))))
def test_garbage_raises_nothing_else(arrivals: list[Packet]) -> None:
    assembler = Assembler()
    for arrival in arrivals:
        try:
            list(assembler.add(*arrival))
        except BadPacket:
            continue


def test_chunks_fit_into_packets() -> None:
    assert [len(part) for part in chunks(bytes(2 * MAX_CHUNK + 1))] == [MAX_CHUNK, MAX_CHUNK, 1]
