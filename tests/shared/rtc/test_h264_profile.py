"""Spellings of H.264 profiles and levels (RFC 6184 section 8.1, table 5)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.rtc.h264_profile import LEVEL_1B, H264Profile, ProfileLevel, read, same_profile

CB, HIGH = H264Profile.CONSTRAINED_BASELINE, H264Profile.HIGH


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("42e01f", ProfileLevel(CB, 31)),
        ("42C01F", ProfileLevel(CB, 31)),
        ("4de01f", ProfileLevel(CB, 31)),
        ("58f01e", ProfileLevel(CB, 30)),
        ("42001f", ProfileLevel(H264Profile.BASELINE, 31)),
        ("58a01f", ProfileLevel(H264Profile.BASELINE, 31)),
        ("4d001f", ProfileLevel(H264Profile.MAIN, 31)),
        ("4d401f", ProfileLevel(H264Profile.MAIN, 31)),
        ("640c1f", ProfileLevel(H264Profile.CONSTRAINED_HIGH, 31)),
        ("640028", ProfileLevel(HIGH, 40)),
        ("42f00b", ProfileLevel(CB, LEVEL_1B)),
        ("42e00b", ProfileLevel(CB, 11)),
        ("640009", ProfileLevel(HIGH, LEVEL_1B)),
        ("6e0028", ProfileLevel(H264Profile.OTHER, 40, 0x6E00)),
        ("42e01", None),
        ("42e01g", None),
        ("", None),
    ],
)
def test_a_profile_level_id_is_read(text: str, expected: ProfileLevel | None) -> None:
    assert read(text) == expected


def test_profiles_are_the_same_in_any_spelling_and_at_any_level() -> None:
    assert same_profile("42e01f", "42C034")
    assert not same_profile("42e01f", "640c1f")
    assert not same_profile("6e0028", "7a0028"), "two that have no name here"
    assert same_profile("nonsense", "NONSENSE")


@given(st.text(max_size=8))
def test_nothing_escapes(text: str) -> None:
    assert same_profile(text, text)
