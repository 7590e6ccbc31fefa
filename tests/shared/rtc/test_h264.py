"""Where H.264 key frames begin, and which parameter sets come with them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.rtc import h264


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        ("65aa", True),
        ("67aa", True),
        ("68aa", False),
        ("61aa", False),
        ("06aa", False),
        ("78 0002 67aa 0002 68bb", True),
        ("78 0002 09aa 0002 65bb", True),
        ("78 0002 68aa 0002 61bb", False),
        ("78 0009 67aa", False),
        ("78 0000 67aa", False),
        ("7c 85 aa", True),
        ("7c 05 aa", False),
        ("7c 81 aa", False),
        ("7c", False),
        ("", False),
    ],
    ids=[
        "IDR",
        "SPS",
        "PPS",
        "slice",
        "SEI",
        "STAP-A with SPS",
        "STAP-A with IDR second",
        "STAP-A of others",
        "STAP-A cut",
        "STAP-A of length 0",
        "FU-A start of IDR",
        "FU-A middle of IDR",
        "FU-A start of slice",
        "FU-A cut",
        "empty",
    ],
)
def test_keyframe_starts(payload: str, expected: bool) -> None:
    units = h264.read(bytes.fromhex(payload))
    assert (units.has_idr or units.has_sps) is expected


@given(st.binary(max_size=60))
def test_nothing_escapes(payload: bytes) -> None:
    units = h264.read(payload)
    assert all(h264.set_key(unit) is None or unit[0] & 0x1F in (h264.SPS, h264.PPS) for unit in units.sets)


def test_sets_of_one_packet_are_read_in_order_and_not_without_end() -> None:
    stap = bytes.fromhex("78 0002 67aa 0003 68bbcc 0001 65 0002 06aa")
    assert h264.read(stap).sets == (bytes.fromhex("67aa"), bytes.fromhex("68bbcc"))
    assert len(h264.read(b"\x78" + bytes.fromhex("0002 68bb") * 300).sets) == h264.MAX_SETS


@pytest.mark.parametrize(
    ("unit", "key"),
    [
        ("67 42e01f 80", 0x700),
        ("67 42e01f 40", 0x701),
        ("67 42e01f 0400", 0x71F),
        ("67 42e01f 0420", None),
        ("67 42e01f", None),
        ("67", None),
        ("65 ce", None),
        ("68 ce", 0x800),
        ("68 60", 0x802),
        ("68 008000", 0x8FF),
        ("68 008080", None),
        ("68 000000", None),
        ("68 01", None),
        ("68", None),
    ],
)
def test_a_set_is_named_by_kind_and_id(unit: str, key: int | None) -> None:
    assert h264.set_key(bytes.fromhex(unit)) == key


def test_sets_of_a_description_survive_what_is_no_set_there() -> None:
    text = "Z0LgH9oBQBbpUgAAAwACAAADAGTA,aM4yyA==,ZWFh,!!!,aM4yyA"
    assert [unit[0] & 0x1F for unit in h264.described_sets(text)] == [h264.SPS, h264.PPS]
    assert h264.described_sets("") == ()


def test_an_aggregate_can_be_read_again() -> None:
    units = [bytes.fromhex("67 42e01f 80"), bytes.fromhex("48 ce")]
    packed = h264.aggregate(units)
    assert packed[0] == 0x60 | 24
    assert h264.read(packed) == h264.Units(False, True, tuple(units))
