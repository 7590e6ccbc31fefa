"""Since when a history knows anything, in words."""

from __future__ import annotations

import math

import pytest

from operators.core.since import ROUTERLESS, since_words


@pytest.mark.parametrize(
    ("since_at", "words"),
    [
        (1_796_086_390.7, "this Redis knows of nothing before 2026-12-01 00:53:10 UTC"),
        (None, ROUTERLESS),
        (math.nan, ROUTERLESS),
        (1e300, ROUTERLESS),
    ],
)
def test_since_when_is_told_in_words(since_at: float | None, words: str) -> None:
    assert since_words(since_at) == words
