"""Spans: every output number has one origin, across skips and switches."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfu.core.media.rewrite import Last, Shifts, SpanMap, switch_timestamp

SAME = Shifts(0, 0, 0, 0)


def test_late_packet_finds_the_span_it_belonged_to() -> None:
    spans: SpanMap[str] = SpanMap()
    spans.begin("a", 10, 110, Shifts(100, 0, 0, 0))
    spans.skip(15)
    late = spans.for_late("a", 12)
    assert late is not None
    assert late.shifts.sequence == 100
    assert spans.for_late("a", 9) is None, "from before it began"
    assert spans.for_late("b", 12) is None


def test_late_packet_of_a_pause_takes_no_other_packets_number() -> None:
    spans: SpanMap[str] = SpanMap()
    spans.begin("a", 10, 110, Shifts(100, 0, 0, 0))
    # After 10..14 a pause until 20, which goes on with the next number.
    spans.begin("a", 20, 115, Shifts(95, 0, 0, 0))
    late = spans.for_late("a", 14)
    assert late is not None
    assert late.out_start == 110
    assert spans.for_late("a", 15) is None
    assert spans.for_late("a", 19) is None


def test_old_layer_is_of_no_use_after_a_switch() -> None:
    spans: SpanMap[str] = SpanMap()
    spans.begin("a", 10, 110, Shifts(100, 0, 0, 0))
    spans.begin("b", 500, 120, Shifts(-380, 0, 0, 0))
    assert spans.for_late("a", 12) is None
    for number, source, index in ((112, "a", 12), (120, "b", 500)):
        span = spans.locate(number)
        assert span is not None
        assert (span.source, span.origin(number)) == (source, index)
    assert spans.locate(109) is None


@given(st.lists(st.sampled_from(["send", "skip", "switch"]), min_size=1, max_size=25))
def test_every_output_number_is_used_once_and_found_again(steps: list[str]) -> None:
    spans: SpanMap[str] = SpanMap()
    source, index, out = "s0", 1000, 5000
    spans.begin(source, index, out, Shifts(out - index, 0, 0, 0))
    sent: list[tuple[int, str, int]] = []
    for number, step in enumerate(steps):
        assert spans.current is not None
        if step == "skip":
            spans.skip(index)
        elif step == "switch":
            source, index = f"s{number + 1}", index + 7919
            spans.begin(source, index, out, Shifts(out - index, 0, 0, 0))
        if step != "skip":
            assert index + spans.current.shifts.sequence == out
            sent.append((out, source, index))
            out += 1
        index += 1
    for number, origin, place in sent:
        found = spans.locate(number)
        assert found is not None
        assert (found.source, found.origin(number)) == (origin, place)


LAST = Last(timestamp=1_000_000, picture_id=0, tl0=0, at=10.0)


@pytest.mark.parametrize(
    ("aligned", "now", "expected"),
    [
        (None, 10.1, 9000),
        (None, 10.0, 90),
        (1_009_500, 10.1, 9500),
        (1_000_000, 10.0, 90),
        (999_000, 10.01, 90),
        (1_000_000 + 90_000 * 60, 10.1, 9000),
        (1_000_000 - 90_000 * 60, 10.1, 9000),
    ],
    ids=[
        "by arrival",
        "at least a millisecond",
        "by the sender's clock",
        "same moment",
        "a little back",
        "a minute ahead is not believed",
        "a minute back is not believed",
    ],
)
def test_time_goes_on_at_a_switch(aligned: int | None, now: float, expected: int) -> None:
    assert switch_timestamp(aligned=aligned, last=LAST, clock_rate=90_000, now=now) - LAST.timestamp == expected


def test_time_wraps_at_a_switch() -> None:
    last = Last(timestamp=0xFFFFFFFF, picture_id=0, tl0=0, at=10.0)
    assert switch_timestamp(aligned=None, last=last, clock_rate=90_000, now=10.1) == 8999
