"""What an operator reads of a fleet."""

from __future__ import annotations

import pytest

from operators.core.fleet_view import drain_words, fleet_view, sfu_row, span
from shared.records import Drain, LoadParts, RouterRecord, SfuState


def test_sfus_and_routers_are_sorted_by_id() -> None:
    view = fleet_view(
        "f",
        sfus=[SfuState(address="ws://b", sfu="b"), SfuState(address="ws://a")],
        routers=[RouterRecord(router="r2"), RouterRecord(router="r1", sfus=("b", "a"))],
    )
    assert [row.sfu for row in view.sfus] == ["b", "ws://a"]
    assert [row.router for row in view.routers] == ["r1", "r2"]
    assert view.routers[0].sfus == ("a", "b")


def test_an_sfu_that_has_not_said_its_load_is_not_shown_as_idle() -> None:
    row = sfu_row(SfuState(address="ws://a", sfu="a"))
    assert row.load is None
    assert row.players is None
    assert sfu_row(SfuState(address="ws://a", load_parts=LoadParts(rooms=0))).rooms == 0


def test_the_part_that_binds_is_named_once_all_are_known() -> None:
    parts = LoadParts(egress_bps=7e6, streams=900, cpu=0.1)
    assert sfu_row(SfuState(address="ws://a", load=0.75, load_parts=parts)).binding == "streams"
    assert sfu_row(SfuState(address="ws://a", load=0.75, load_parts=LoadParts(streams=900))).binding == ""


def drained(**facts: object) -> SfuState:
    return SfuState(address="ws://a", sfu="a", status="CORDONED", drain=Drain(**facts))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (SfuState(address="ws://a"), ""),
        (
            drained(cause="sigterm", elapsed_s=60.0, drain_max_s=1800.0, grace_s=3600.0),
            "SIGTERM, for 1 min, asks in 29 min, ends within 59 min",
        ),
        (
            drained(cause="sigterm", elapsed_s=1900.0, drain_max_s=1800.0, grace_s=3600.0, asking=True),
            "SIGTERM, for 31 min 40 s, asking players to move, ends within 28 min 20 s",
        ),
        (
            drained(by="kim", reason="kernel", exit_when_empty=False, elapsed_s=3.0),
            "by kim, for 3.0 s, “kernel”, held until uncordoned",
        ),
        (
            drained(by="autoscaler", exit_when_empty=False, elapsed_s=60.0, drain_max_s=1800.0, lease_left_s=3540.0),
            "by autoscaler, for 1 min, lapses in 59 min unless renewed, asks in 29 min",
        ),
    ],
)
def test_a_drain_is_told_in_words(state: SfuState, words: str) -> None:
    assert drain_words(state) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.0, "0.0 s"), (9.94, "9.9 s"), (59, "59 s"), (60, "1 min"), (3600, "1 h"), (5460, "1 h 31 min")],
)
def test_spans(seconds: float, words: str) -> None:
    assert span(seconds) == words
