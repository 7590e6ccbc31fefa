"""Percentiles by nearest rank, memory and CPU from the kernel."""

from __future__ import annotations

import os
import time

import pytest

from bench.stats import cpu_seconds, percentile, resident_bytes


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


def test_cpu_of_a_short_look_is_seen_though_it_is_less_than_a_tick() -> None:
    before, began = sum(cpu_seconds(os.getpid())), time.process_time()
    while time.process_time() - began < 0.002:
        pass
    assert 0.002 <= sum(cpu_seconds(os.getpid())) - before < 1


def test_cpu_of_a_process_that_is_not_there_is_an_error() -> None:
    with pytest.raises(OSError):
        cpu_seconds(2**22 + 1)
