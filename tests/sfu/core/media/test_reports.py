"""Receiver statistics as RFC 3550 counts them, the publisher's clock, round trips."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfu.core.media.reports import MAX_EXTRAPOLATION_S, ReceiveStats, RoundTrip, SenderClock


def arrive(stats: ReceiveStats, sequence: int, *, now: float = 0.0, timestamp: int = 0) -> None:
    stats.count(stats.extend(sequence), timestamp, 100, now=now)


def test_loss_is_counted_in_all_and_since_the_last_report() -> None:
    stats = ReceiveStats(ssrc=1, clock_rate=90_000, sequence=65_534)
    for sequence in (65_534, 65_535, 1, 2):
        arrive(stats, sequence)
    block = stats.block(now=0.0)
    assert (block.lost, block.fraction_lost) == (1, 256 // 5)
    for sequence in (3, 4):
        arrive(stats, sequence)
    block = stats.block(now=1.0)
    assert (block.lost, block.fraction_lost) == (1, 0)
    assert block.highest & 0xFFFF == 4


@given(start=st.integers(0, 0xFFFF), order=st.permutations(list(range(20))))
def test_reordering_is_no_loss(start: int, order: list[int]) -> None:
    stats = ReceiveStats(ssrc=1, clock_rate=90_000, sequence=(start + order[0]) & 0xFFFF)
    for offset in order:
        arrive(stats, (start + offset) & 0xFFFF)
    assert stats.lost == 0


def test_jitter_is_zero_on_time_and_grows_with_delay_across_the_timestamp_wrap() -> None:
    stats = ReceiveStats(ssrc=1, clock_rate=90_000, sequence=0)
    for number in range(10):
        arrive(stats, number, now=number / 30, timestamp=(0xFFFFFFFF - 9000 + number * 3000) & 0xFFFFFFFF)
    assert stats.jitter == pytest.approx(0.0, abs=1e-3)
    arrive(stats, 10, now=10 / 30 + 0.016, timestamp=(0xFFFFFFFF - 9000 + 30_000) & 0xFFFFFFFF)
    assert stats.jitter == pytest.approx(0.016 * 90_000 / 16, rel=0.01)


def test_block_before_any_sender_report_says_so() -> None:
    stats = ReceiveStats(ssrc=1, clock_rate=90_000, sequence=0)
    assert (stats.block(now=50.0).last_sr, stats.block(now=50.0).delay_since_sr) == (0, 0)
    stats.sender_report(0x0001_0002_0003_0004, now=50.0)
    block = stats.block(now=51.5)
    assert (block.last_sr, block.delay_since_sr) == (0x0002_0003, 3 * 32768)


def test_clock_moves_both_times_on_together() -> None:
    clock = SenderClock(ntp=100 << 32, timestamp=0xFFFFFFFF, clock_rate=90_000, now=5.0)
    assert clock.at(now=7.5) == ((102 << 32) + (1 << 31), (0xFFFFFFFF + 225_000) & 0xFFFFFFFF)
    assert clock.at(now=5.1 + MAX_EXTRAPOLATION_S) is None


@given(ticks=st.integers(-(1 << 30), 1 << 30), rate=st.sampled_from([8000, 48_000, 90_000]))
def test_clock_translates_there_and_back(ticks: int, rate: int) -> None:
    clock = SenderClock(ntp=3_900_000_000 << 32, timestamp=12345, clock_rate=rate, now=0.0)
    timestamp = (12345 + ticks) & 0xFFFFFFFF
    assert clock.timestamp_of(clock.ntp_of(timestamp)) == timestamp


def test_round_trip_is_what_was_not_spent_at_the_receiver() -> None:
    trip = RoundTrip()
    trip.report_sent(7 << 16, now=10.0)
    trip.echoed(7, 65536 // 2, now=10.7)
    assert trip.rtt_s == pytest.approx(0.2)
    trip.echoed(8, 0, now=99.0)
    assert trip.rtt_s == pytest.approx(0.2), "an echo of what we never sent is ignored"


def test_least_round_trip_leaves_the_jitter_out() -> None:
    trip = RoundTrip()
    for number, took_s in enumerate((0.05, 0.02, 0.06, 0.05, 0.06)):
        trip.report_sent(number + 1 << 16, now=10.0 * number)
        trip.echoed(number + 1, 0, now=10.0 * number + took_s)
    assert trip.rtt_s == pytest.approx(0.06)
    assert trip.least_s is not None
    assert 0.02 < trip.least_s < 0.035
    for number in range(10, 60):
        trip.report_sent(number << 16, now=10.0 * number)
        trip.echoed(number, 0, now=10.0 * number + 0.2)
    assert trip.least_s == pytest.approx(0.2, rel=0.01), "the path became longer"


def test_of_reports_with_the_same_time_the_newest_is_meant() -> None:
    trip = RoundTrip()
    for now in (10.0, 11.0, 12.0):
        trip.report_sent(7 << 16, now=now)
    trip.echoed(7, 0, now=12.05)
    assert trip.rtt_s == trip.least_s == pytest.approx(0.05)


def test_old_reports_are_forgotten() -> None:
    trip = RoundTrip()
    for number in range(1, 100):
        trip.report_sent(number << 16, now=float(number))
    trip.echoed(1, 0, now=100.0)
    assert trip.rtt_s is None
    trip.echoed(99, 0, now=100.0)
    assert trip.rtt_s == 1.0
