"""Transport-wide feedback: what is built is read back, chunk by chunk; broken feedback costs nothing but itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import BadPacket
from shared.rtc import rtcp
from shared.rtc.transport_cc import MAX_REPORTED, TransportFeedback, build, read


def told(arrivals: list[int | None], *, base: int = 100) -> TransportFeedback:
    (packet,) = rtcp.parse(build(sender=1, media=2, base=base, count=7, arrivals=arrivals))
    assert isinstance(packet, TransportFeedback)
    assert (packet.sender, packet.media, packet.base, packet.count) == (1, 2, base & 0xFFFF, 7)
    start = packet.reference * 256
    return TransportFeedback(
        sender=1,
        media=2,
        base=packet.base,
        reference=packet.reference,
        count=7,
        arrivals=tuple(None if ticks is None else start + ticks for ticks in packet.arrivals),
    )


def chunks(arrivals: list[int | None]) -> list[int]:
    packet = build(sender=1, media=2, base=0, count=0, arrivals=arrivals)
    found, left, at = [], len(arrivals), 20
    while left > 0:
        chunk = int.from_bytes(packet[at : at + 2], "big")
        found.append(chunk)
        left -= chunk & 0x1FFF if chunk < 0x8000 else 14 if chunk < 0xC000 else 7
        at += 2
    return found


STEPS = st.one_of(st.none(), st.integers(-0x8000, 0x7FFF), st.integers(0, 255), st.just(4))


@given(st.lists(STEPS, max_size=300))
def test_what_is_built_is_read_back(steps: list[int | None]) -> None:
    ticks = 10_000_000
    arrivals: list[int | None] = []
    for step in [*steps, 0]:
        if step is not None and any(each is not None for each in arrivals):
            ticks += step
        arrivals.append(None if step is None else ticks)
    assert told(arrivals).arrivals == tuple(arrivals)


def test_a_run_is_one_chunk() -> None:
    assert chunks([1000 + each for each in range(500)]) == [0x2000 | 500]


def test_a_long_loss_costs_one_chunk_more() -> None:
    assert chunks([0, *[None] * 2000, 5]) == [0xA000, 1987, 0x2001]


def test_losses_among_small_steps_are_a_vector_of_bits() -> None:
    assert chunks([0, None, 1, 2, None, None, 3, 4, 5, 6, 7, 8, 9, 10]) == [0b10_10110011111111]


def test_large_and_negative_steps_are_a_vector_of_pairs() -> None:
    arrivals: list[int | None] = [1000, 1300, None, 1299, 1300, 5000, 5001]
    assert chunks(arrivals) == [0b11_01_10_00_10_01_10_01]
    assert told(arrivals).arrivals == tuple(arrivals)


def test_sequence_numbers_wrap() -> None:
    assert told([0, 1, None, 3], base=65534).arrivals == (0, 1, None, 3)


def test_reference_time_wraps_after_twelve_days() -> None:
    assert told([(1 << 32) + 5]).reference == 0


def body(reported: int, *tail: int) -> bytes:
    return bytes(8) + b"\0\1" + reported.to_bytes(2, "big") + bytes(4) + bytes(tail)


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(body(1)[:-1], id="too short"),
        pytest.param(body(1), id="no chunk"),
        pytest.param(body(1, 0x20, 1), id="no delta"),
        pytest.param(body(1, 0x40, 1, 5), id="half a delta"),
        pytest.param(body(5, 0x20, 0, 1), id="empty run"),
        pytest.param(body(1, 0x60, 1, 0, 0, 0), id="reserved status in a run"),
        pytest.param(body(7, 0xF0, 0, 0, 0, 0), id="reserved status in a vector"),
        pytest.param(body(MAX_REPORTED + 1, 0x1F, 0xFF, 0x1F, 0xFF), id="too many"),
    ],
)
def test_broken_feedback_is_refused(broken: bytes) -> None:
    with pytest.raises(BadPacket):
        read(broken)


def test_what_a_chunk_says_past_the_count_is_filling() -> None:
    assert read(body(2, 0xD7, 0xFF, 9, 8)).arrivals == (9, 17)


def test_feedback_about_nothing_says_nothing() -> None:
    assert read(body(0)).arrivals == ()


@given(st.binary(max_size=60))
def test_nothing_but_bad_packet_comes_of_noise(noise: bytes) -> None:
    try:
        feedback = read(noise)
    except BadPacket:
        return
    assert len(feedback.arrivals) <= MAX_REPORTED
