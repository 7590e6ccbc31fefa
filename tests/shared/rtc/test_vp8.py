"""The VP8 descriptor in all its lengths, and its rewriting in place."""

from __future__ import annotations

import contextlib

import pytest
from aiortc.codecs.vpx import VpxPayloadDescriptor
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import BadPacket
from shared.rtc import vp8

descriptors = st.builds(
    VpxPayloadDescriptor,
    partition_start=st.integers(0, 1),
    partition_id=st.integers(0, 7),
    picture_id=st.none() | st.integers(0, 0x7FFF),
    tl0picidx=st.none() | st.integers(0, 255),
    tid=st.none() | st.tuples(st.integers(0, 3), st.integers(0, 1)),
    keyidx=st.none() | st.integers(0, 31),
)


@given(theirs=descriptors, body=st.binary(min_size=1, max_size=20))
def test_reads_what_aiortc_writes(theirs: VpxPayloadDescriptor, body: bytes) -> None:
    payload = bytes(theirs) + body
    ours = vp8.parse(payload)
    assert ours.length == len(bytes(theirs))
    assert ours.picture_id == (-1 if theirs.picture_id is None else theirs.picture_id)
    assert ours.tl0 == (-1 if theirs.tl0picidx is None else theirs.tl0picidx)
    assert ours.tid == (-1 if theirs.tid is None else theirs.tid[0])
    starts_frame = theirs.partition_start == 1 and theirs.partition_id == 0
    assert ours.keyframe_start == (starts_frame and body[0] & 1 == 0)


@given(
    theirs=descriptors,
    body=st.binary(min_size=1, max_size=20),
    picture_id_shift=st.integers(-70_000, 70_000),
    tl0_shift=st.integers(-600, 600),
)
def test_shifting_changes_the_two_numbers_and_nothing_else(
    theirs: VpxPayloadDescriptor, body: bytes, picture_id_shift: int, tl0_shift: int
) -> None:
    payload = bytes(theirs) + body
    before = vp8.parse(payload)
    shifted = vp8.shifted(payload, before, picture_id_shift=picture_id_shift, tl0_shift=tl0_shift)
    after = vp8.parse(shifted)
    assert len(shifted) == len(payload)
    if before.picture_id_mask:
        assert (after.picture_id - before.picture_id - picture_id_shift) & before.picture_id_mask == 0
    if before.tl0_at >= 0:
        assert (after.tl0 - before.tl0 - tl0_shift) & 0xFF == 0
    back = vp8.shifted(shifted, after, picture_id_shift=-picture_id_shift, tl0_shift=-tl0_shift)
    assert back == payload


@pytest.mark.parametrize("payload", ["", "80", "8080", "808080", "90c080", "10", "90e0800102"])
def test_truncated_descriptors_are_refused(payload: str) -> None:
    with pytest.raises(BadPacket):
        vp8.parse(bytes.fromhex(payload))


@given(st.binary(max_size=12))
def test_only_bad_packet_escapes(payload: bytes) -> None:
    with contextlib.suppress(BadPacket):
        assert vp8.parse(payload).length < len(payload)
