"""What is kept of H.264 parameter sets: the newest of each name, within bounds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sfu.core.media.parameter_sets import MAX_KEPT, MAX_KEPT_BYTES, ParameterSets
from shared.rtc import h264
from tests.fakes.h264_stream import pps, sps


def kept(sets: ParameterSets) -> list[bytes]:
    return list(h264.read(sets.aggregate()).sets)


def test_the_newest_of_each_id_is_sent_sequences_first() -> None:
    sets = ParameterSets()
    sets.keep(pps(0), 1)
    sets.keep(sps(0, b"old"), 2)
    sets.keep(sps(1), 3)
    sets.keep(sps(0, b"new"), 4)
    assert kept(sets) == [sps(1), sps(0, b"new"), pps(0)]


def test_a_late_packet_takes_no_newer_set_away() -> None:
    sets = ParameterSets((sps(0, b"described"), pps(0)))
    sets.keep(sps(0, b"new"), 10)
    sets.keep(sps(0, b"old"), 9)
    assert kept(sets) == [sps(0, b"new"), pps(0)]


def test_a_picture_set_alone_begins_nothing() -> None:
    sets = ParameterSets()
    assert not sets.complete
    sets.keep(pps(0), 1)
    assert not sets.complete
    sets.keep(sps(0), 2)
    assert sets.complete


def test_a_set_too_long_to_keep_takes_its_older_namesake_away() -> None:
    sets = ParameterSets((sps(0), pps(0)))
    sets.keep(sps(0, bytes(MAX_KEPT_BYTES)), 1)
    assert not sets.complete


def test_another_encoder_of_the_same_stream_replaces_what_it_inherits() -> None:
    sets = ParameterSets()
    sets.keep(sps(0, b"old"), 70_000)
    sets.keep(pps(0), 70_000)
    heir = sets.inherited()
    heir.keep(sps(0, b"new"), 5)
    assert kept(heir) == [sps(0, b"new"), pps(0)]
    assert kept(sets) == [sps(0, b"old"), pps(0)]


@given(st.lists(st.tuples(st.sampled_from([0x67, 0x68, 0x65]), st.binary(max_size=700)), max_size=40))
def test_it_stays_within_its_bounds(units: list[tuple[int, bytes]]) -> None:
    sets = ParameterSets()
    for index, (head, body) in enumerate(units):
        unit = bytes((head,)) + body
        if head != 0x65:
            sets.keep(unit, index)
    if sets.complete:
        assert len(sets.aggregate()) <= MAX_KEPT_BYTES
        assert len(kept(sets)) <= MAX_KEPT
