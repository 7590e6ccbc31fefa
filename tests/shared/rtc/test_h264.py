"""Where H.264 key frames begin."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.rtc.h264 import starts_keyframe


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
    assert starts_keyframe(bytes.fromhex(payload)) is expected


@given(st.binary(max_size=60))
def test_nothing_escapes(payload: bytes) -> None:
    assert starts_keyframe(payload) in (True, False)
