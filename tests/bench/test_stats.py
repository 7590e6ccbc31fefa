"""Percentiles by nearest rank, memory from the kernel."""

from __future__ import annotations

import os

import pytest

from bench.stats import percentile, resident_bytes


def test_percentiles_are_values_that_were_seen() -> None:
    values = [float(number) for number in range(1, 101)]
    assert percentile(values, 0.5) == 50
    assert percentile(values, 0.99) == 99
    assert percentile(values, 1.0) == 100
    assert percentile([7.0], 0.01) == 7


def test_there_is_no_percentile_of_nothing() -> None:
    with pytest.raises(ValueError, match="no values"):
        percentile([], 0.5)


def test_resident_memory_grows_with_what_is_held() -> None:
    before = resident_bytes(os.getpid())
    held = bytearray(os.urandom(1)) * (64 << 20)
    assert resident_bytes(os.getpid()) - before > 32 << 20
    assert held
