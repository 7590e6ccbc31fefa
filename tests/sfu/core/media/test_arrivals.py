"""What arrived is told soon, once, in order and within bounds, whatever the sender's numbers are."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from sfu.core.media.arrivals import LATEST_S, MANY, MAX_RECEIVED, SOON_S, WINDOW, ArrivalReport, Arrivals
from shared.rtc.transport_cc import build


def note(arrivals: Arrivals, *sequences: int, at: float = 1.0) -> list[bool]:
    return [arrivals.note(sequence & 0xFFFF, arrived=at, ssrc=7, now=at) for sequence in sequences]


def test_nothing_is_due_before_anything_came() -> None:
    arrivals = Arrivals()
    assert not arrivals.due(now=1.0)
    assert arrivals.deadline is None
    assert arrivals.take() == []


def test_few_packets_wait_for_the_latest_moment_and_many_go_sooner() -> None:
    few, many = Arrivals(), Arrivals()
    note(few, 1)
    note(many, *range(MANY))
    assert not few.due(now=1.0 + SOON_S)
    assert few.due(now=1.0 + LATEST_S)
    assert few.deadline == 1.0 + LATEST_S
    assert not many.due(now=1.0)
    assert many.due(now=1.0 + SOON_S)


def test_losses_are_told_between_what_came_and_nothing_twice() -> None:
    arrivals = Arrivals()
    note(arrivals, 65534, 65535, 2)
    assert arrivals.take() == [ArrivalReport(65534, (4000, 4000, None, None, 4000))]
    note(arrivals, 4, at=2.0)
    assert arrivals.take() == [ArrivalReport(3, (None, 8000))]
    assert arrivals.take() == []


def test_a_late_packet_is_told_again_with_what_came_since() -> None:
    arrivals = Arrivals()
    note(arrivals, 1, 3, 4)
    arrivals.take()
    note(arrivals, 2, at=2.0)
    assert arrivals.take() == [ArrivalReport(2, (8000, 4000, 4000))]


def test_repeats_are_ignored() -> None:
    arrivals = Arrivals()
    assert note(arrivals, 5, 5, 6, 5) == [True, False, True, False]
    arrivals.take()
    assert note(arrivals, 5, 6) == [False, False]
    assert arrivals.take() == []


def test_a_number_far_ahead_begins_again_and_one_far_behind_is_ignored() -> None:
    arrivals = Arrivals()
    note(arrivals, 100, 101)
    assert note(arrivals, 101 + WINDOW) == [True]
    assert note(arrivals, 101) == [False]
    assert arrivals.take() == [ArrivalReport(101 + WINDOW, (4000,))]


def test_a_gap_inside_the_window_is_told_whole() -> None:
    arrivals = Arrivals()
    note(arrivals, 0, WINDOW - 1)
    assert arrivals.take() == [ArrivalReport(0, (4000, *[None] * (WINDOW - 2), 4000))]


def test_a_pause_too_long_for_one_step_begins_another_report() -> None:
    arrivals = Arrivals()
    note(arrivals, 0, 1, at=1.0)
    note(arrivals, 3, at=20.0)
    assert arrivals.take() == [ArrivalReport(0, (4000, 4000)), ArrivalReport(2, (None, 80_000))]


def test_many_arrivals_are_several_reports_that_fit_datagrams() -> None:
    arrivals = Arrivals()
    for number in range(WINDOW // 2):
        note(arrivals, 2 * number, at=1.0 + (number % 2) * 0.1)
    reports = arrivals.take()
    assert [report.base for report in reports] == [0, 511, 1023, 1535]
    for report in reports:
        assert sum(1 for each in report.arrivals if each is not None) <= MAX_RECEIVED
        assert len(build(sender=1, media=2, base=report.base, count=0, arrivals=report.arrivals)) <= 1128


@given(st.lists(st.tuples(st.integers(0, 65535), st.booleans(), st.floats(0, 40)), max_size=200))
def test_whatever_the_numbers_reports_join_up_and_can_be_built(numbers: list[tuple[int, bool, float]]) -> None:
    arrivals = Arrivals()
    for sequence, takes, at in numbers:
        arrivals.note(sequence, arrived=at, ssrc=7, now=at)
        if not takes:
            continue
        reports = arrivals.take()
        assert sum(len(report.arrivals) for report in reports) <= WINDOW
        for before, after in itertools.pairwise(reports):
            assert after.base == (before.base + len(before.arrivals)) & 0xFFFF
        for report in reports:
            assert report.arrivals[-1] is not None
            build(sender=1, media=2, base=report.base, count=0, arrivals=report.arrivals)
