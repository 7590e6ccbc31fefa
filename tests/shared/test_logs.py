"""Trouble is logged once a minute and kind, with how much was held back; never without bound."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.logs import OncePerMinute, fields, read_fields, visible

BIDIRECTIONAL = [chr(code) for code in (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))]
"""Every character of Unicode with the property Bidi_Control."""


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def limited(clock: Clock) -> OncePerMinute:
    return OncePerMinute(logging.getLogger("test-logs"), clock=clock)


def test_a_kind_is_logged_once_a_minute(clock: Clock, limited: OncePerMinute, caplog: pytest.LogCaptureFixture) -> None:
    for second in range(60):
        clock.now = 1000.0 + second
        limited.warning("bad-message", f"number {second}")
    assert [record.getMessage() for record in caplog.records] == ["[bad-message] number 0"]


def test_the_next_line_says_how_many_were_held_back(
    clock: Clock, limited: OncePerMinute, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(5):
        limited.warning("bad-message", "first")
    clock.now += 60.0
    limited.warning("bad-message", "second")
    clock.now += 60.0
    limited.warning("bad-message", "third")
    assert [record.getMessage() for record in caplog.records] == [
        "[bad-message] first",
        "[bad-message] second (4 more since the last line)",
        "[bad-message] third",
    ]


def test_kinds_do_not_hold_each_other_back(limited: OncePerMinute, caplog: pytest.LogCaptureFixture) -> None:
    for kind in ("bad-message", "bad-token", "bad-message"):
        limited.warning(kind, "x")
    assert [record.getMessage() for record in caplog.records] == ["[bad-message] x", "[bad-token] x"]


def test_many_kinds_neither_fill_memory_nor_the_log(limited: OncePerMinute, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(10 * OncePerMinute.MAX_KINDS):
        limited.warning(f"kind-{number}", "x")
    assert len(limited._last) <= OncePerMinute.MAX_KINDS + 1
    assert len(caplog.records) <= OncePerMinute.MAX_KINDS + 1
    assert caplog.records[-1].getMessage() == "[other] x"


def test_fields_leave_out_what_is_not_known() -> None:
    assert fields(sfu="a", load=0.123456, players=3, drain=None) == "sfu=a load=0.123 players=3"


def test_what_others_wrote_begins_no_line_and_moves_no_terminal() -> None:
    forged = "join\n2026-11-30 09:00:00,000 INFO    router [drain] cordon sfu=a"
    assert fields(cause=forged, cell="\x1b[2J") == (
        r'cause="join\n2026-11-30 09:00:00,000 INFO    router [drain] cordon sfu=a" cell="\x1b[2J"'
    )
    assert fields(room="küche日本") == "room=küche日本"


def test_what_others_wrote_forges_no_field() -> None:
    assert fields(by="ann sfu=b", reason='a "b"=\\', sfu="c") == r'by="ann sfu=b" reason="a \"b\"=\\" sfu=c'
    assert read_fields("cordon " + fields(by="ann sfu=b", sfu="c")) == ("cordon", {"by": "ann sfu=b", "sfu": "c"})


@pytest.mark.parametrize("control", BIDIRECTIONAL)
def test_what_others_wrote_turns_no_line_around(control: str) -> None:
    for shown in (visible(f"a{control}b"), fields(by=f"a{control}b")):
        assert control not in shown
        assert f"{ord(control):04x}" in shown.replace("\\x", "00")


@given(values=st.dictionaries(st.from_regex(r"[a-z_]+", fullmatch=True), st.text(), max_size=5), words=st.booleans())
def test_fields_are_read_back_as_they_were_written(values: dict[str, str], words: bool) -> None:
    line = ("cordon sfu " if words else "") + fields(**values)
    assert line.isprintable()
    assert read_fields(line) == ("cordon sfu" if words else "", values)


@given(text=st.text(alphabet=st.sampled_from('ab= "\\xuU0\n') | st.characters()))
def test_any_line_can_be_read(text: str) -> None:
    read_fields(text)
