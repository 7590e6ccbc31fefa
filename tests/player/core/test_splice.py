"""A publication is one stream, whatever its copies do."""

from __future__ import annotations

import pytest

from player.core.splice import HOLD_S, QUIET_S, RETURN_S, Splice

TICKS, UNIT_S = 960, 0.02


def unit(number: int) -> bytes:
    return b"sound of some length %06d" % number


class Stream:
    """Units by number, sent by copies whose timestamps are shifted."""

    def __init__(self, *, whole: bool = False) -> None:
        self.splice = Splice(clock=48_000, whole=whole)
        self.played: list[tuple[int, bytes]] = []

    def bring(self, copy: str, number: int, *, at: float | None = None, shift: int = 0, data: bytes = b"") -> None:
        timestamp = (number * TICKS + shift) & 0xFFFFFFFF
        arrival = number * UNIT_S if at is None else at
        self.played += self.splice.add(copy, data or unit(number), timestamp, at=arrival)

    @property
    def numbers(self) -> list[int]:
        return [int(data[-6:]) for _, data in self.played]


def test_one_copy_is_played_as_it_comes_across_the_wrap() -> None:
    stream = Stream()
    for number in range(100):
        stream.bring("a", number, shift=2**32 - 50 * TICKS)
    assert stream.numbers == list(range(100))
    assert [ticks for ticks, _ in stream.played] == [number * TICKS for number in range(100)]


@pytest.mark.parametrize("lead", [-4, -1, 0, 1, 4])
def test_twins_are_joined_without_loss_or_double_whichever_is_ahead(lead: int) -> None:
    stream = Stream()
    for number in range(60):
        if number < 40:
            stream.bring("a", number, shift=77)
        if number + lead >= 20 and number >= 20:
            stream.bring("b", number + lead, at=number * UNIT_S + 0.001, shift=2**31)
    assert stream.numbers == list(range(60 + min(lead, 0) if lead < 0 else 60 + lead))
    assert [ticks for ticks, _ in stream.played] == [number * TICKS for number in stream.numbers]


def test_a_copy_that_takes_over_without_overlap_is_placed_by_the_clock() -> None:
    stream = Stream()
    for number in range(20):
        stream.bring("a", number)
    for number in range(50, 60):
        stream.bring("b", number, shift=123_456)
    assert stream.numbers == [*range(20), *range(50, 60)]
    ticks = [ticks for ticks, _ in stream.played]
    assert ticks[20] == pytest.approx(50 * TICKS, abs=TICKS)


def test_copies_that_are_no_twins_are_changed_over_once_and_time_goes_on() -> None:
    """A browser encodes for each SFU separately: no bytes are alike, and a picture begins at the copy's first frame."""
    stream = Stream(whole=True)
    for number in range(60):
        stream.bring("a", number, data=b"of the first encoder %06d" % number)
        if number >= 30:
            stream.bring("b", number, shift=5_000_000, data=b"of the second encoder %06d" % number)
    first = [number for number, (_, data) in zip(stream.numbers, stream.played, strict=True) if b"first" in data]
    second = [number for number, (_, data) in zip(stream.numbers, stream.played, strict=True) if b"second" in data]
    assert first == list(range(len(first)))
    assert 30 + HOLD_S / UNIT_S <= len(first) <= 33 + HOLD_S / UNIT_S
    assert second == list(range(30, 60)), "from its key frame on"
    ticks = [ticks for ticks, _ in stream.played]
    assert ticks == sorted(set(ticks))
    assert ticks[-1] == pytest.approx(59 * TICKS, abs=3 * TICKS)


def test_silence_is_not_recognised_by_its_content() -> None:
    stream = Stream()
    for number in range(60):
        stream.bring("a", number, data=b"zz%d" % (number % 2))
        if number >= 30:
            stream.bring("b", number, shift=99, data=b"zz%d" % (number % 2))
    ticks = [ticks for ticks, _ in stream.played]
    assert ticks == sorted(set(ticks))
    assert ticks[-1] == pytest.approx(59 * TICKS, abs=TICKS)
    assert len(ticks) >= 57


def test_a_copy_that_ended_is_replaced_after_a_short_silence() -> None:
    stream = Stream()
    for number in range(10):
        stream.bring("a", number)
    stream.bring("b", 200, at=9 * UNIT_S + QUIET_S / 2)
    assert len(stream.played) == 10
    stream.bring("b", 201, at=9 * UNIT_S + QUIET_S + 0.001)
    assert stream.numbers[10:] == [200, 201]


def test_what_the_old_copy_still_brings_is_ignored_unless_the_new_one_falls_silent() -> None:
    stream = Stream()
    for number in range(10):
        stream.bring("a", number)
    for number in range(5, 10):
        stream.bring("b", number)
    stream.bring("a", 10)
    assert stream.numbers == list(range(10))
    stream.bring("a", 10 + int(RETURN_S / UNIT_S) + 1)
    stream.bring("a", 11 + int(RETURN_S / UNIT_S) + 20)
    assert stream.numbers[10:] == [36, 56]


def test_a_unit_that_comes_twice_on_one_copy_is_played_once_and_a_late_one_too() -> None:
    stream = Stream()
    for number in (0, 1, 1, 3, 2, 2, 4):
        stream.bring("a", number)
    assert stream.numbers == [0, 1, 3, 2, 4]
