"""Gaps as a listener meets them: new content only, over all copies, while the publisher publishes."""

from __future__ import annotations

import pytest

from client_sim.core.gaps import WINDOW, GapMeter, Stretch, Unwrapper


def played(*arrivals: tuple[int | None, float]) -> GapMeter:
    meter = GapMeter(unit_ms=20.0)
    for number, at_ms in arrivals:
        meter.arrived(number, at=at_ms / 1000.0)
    return meter


@pytest.mark.parametrize(
    ("arrivals", "gap_ms", "units", "duplicates", "missing", "content_gap_ms"),
    [
        pytest.param([], 0, 0, 0, 0, 0, id="nothing"),
        pytest.param([(5, 0)], 0, 1, 0, 0, 0, id="the-beginning-is-no-gap"),
        pytest.param([(0, 0), (1, 20), (2, 40)], 20, 3, 0, 0, 0, id="steady"),
        pytest.param([(0, 0), (1, 20), (1, 25), (2, 40)], 20, 3, 1, 0, 0, id="a-copy-is-no-news"),
        pytest.param([(0, 0), (0, 90), (1, 100)], 100, 2, 1, 0, 0, id="duplicates-do-not-hide-a-gap"),
        pytest.param([(0, 0), (2, 40)], 40, 2, 0, 1, 20, id="one-lost"),
        pytest.param([(0, 0), (4, 80), (6, 120)], 80, 3, 0, 4, 60, id="the-longest-run-of-losses"),
        pytest.param([(0, 0), (2, 40), (1, 45), (3, 60)], 40, 4, 0, 0, 0, id="late-is-not-lost"),
        pytest.param([(3, 0), (2, 5), (4, 20)], 15, 3, 0, 0, 0, id="the-first-ones-out-of-order"),
        pytest.param([(None, 0), (None, 30), (None, 70)], 40, 3, 0, 0, 0, id="foreign-content-has-gaps-only"),
        pytest.param(
            [(0, 0), (1, 20), (0, 21), (2, 40), (1, 41), (3, 60), (2, 61)], 20, 4, 3, 0, 0, id="two-copies-interleaved"
        ),
    ],
)
def test_counts(
    arrivals: list[tuple[int | None, float]],
    gap_ms: float,
    units: int,
    duplicates: int,
    missing: int,
    content_gap_ms: float,
) -> None:
    report = played(*arrivals).report(now=arrivals[-1][1] / 1000.0 if arrivals else 0.0)
    assert report.longest_gap_ms == pytest.approx(gap_ms, abs=0.01)
    assert (report.units, report.duplicates, report.missing) == (units, duplicates, missing)
    assert report.longest_content_gap_ms == content_gap_ms


def test_an_open_gap_counts_while_the_publication_lives() -> None:
    meter = played((0, 0), (1, 20))
    assert meter.report(now=0.520).longest_gap_ms == pytest.approx(500)
    assert meter.report(now=0.520).longest_gap_at == 0.520


def test_silence_after_the_end_is_no_gap() -> None:
    meter = played((0, 0), (1, 20))
    meter.paused()
    assert meter.report(now=9.0).longest_gap_ms == pytest.approx(20)
    meter.arrived(2, at=10.0)
    assert meter.report(now=10.0).longest_gap_ms == pytest.approx(20)


def test_a_mark_begins_a_stretch_of_its_own() -> None:
    meter = played((0, 0), (1, 300))
    meter.mark(Stretch.MOVE)
    meter.arrived(2, at=0.320)
    assert meter.since(Stretch.MOVE, now=0.320) == pytest.approx(20)
    assert meter.since(Stretch.OBSERVER, now=0.320) == pytest.approx(300)
    assert meter.since(Stretch.MOVE, now=0.400) == pytest.approx(80)


def test_what_leaves_the_window_is_settled_for_good() -> None:
    meter = GapMeter(unit_ms=20.0)
    for number in range(3 * WINDOW):
        if number not in (10, 11, 12, 2 * WINDOW):
            meter.arrived(number, at=number * 0.02)
    report = meter.report(now=3 * WINDOW * 0.02)
    assert (report.missing, report.longest_content_gap_ms) == (4, 60.0)
    assert not meter.arrived(10, at=100.0), "too late to tell from a duplicate"


def test_a_jump_beyond_the_window_counts_every_unit() -> None:
    report = played((0, 0), (5 * WINDOW, 100)).report(now=0.1)
    assert report.missing == 5 * WINDOW - 1
    assert report.longest_content_gap_ms == (5 * WINDOW - 1) * 20.0


@pytest.mark.parametrize(
    ("first", "then", "after_s", "number"),
    [
        (17, 18, 0.02, 18),
        (499, 0, 0.02, 500),
        (499, 498, 0.02, 498),
        (0, 499, -0.01, 499),
        (250, 250, 10.0, 750),
        (250, 260, 30.2, 1760),
    ],
)
def test_laps_are_told_apart_by_the_clock(first: int, then: int, after_s: float, number: int) -> None:
    unwrap = Unwrapper(length=500, unit_s=0.02)
    assert unwrap.number(first, at=100.0) == first
    assert unwrap.number(then, at=100.0 + after_s) == number
