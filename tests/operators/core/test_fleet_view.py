"""What an operator reads of a fleet."""

from __future__ import annotations

import pytest
from rich.console import Console

from cli.tables import fleet_table
from operators.core.fleet_view import drain_of, drain_words, fleet_view, sfu_row, span, status_words
from shared.records import Drain, LoadParts, MissingMedia, RouterRecord, SfuState
from shared.store.answers import HeardRouter, HeardSfu


def test_sfus_and_routers_are_sorted_by_id() -> None:
    view = fleet_view(
        "f",
        sfus=[HeardSfu(SfuState(address="ws://b", sfu="b")), HeardSfu(SfuState(address="ws://a"))],
        routers=[HeardRouter(RouterRecord(router="r2")), HeardRouter(RouterRecord(router="r1", sfus=("b", "a")))],
    )
    assert [row.sfu for row in view.sfus] == ["b", "ws://a"]
    assert [row.router for row in view.routers] == ["r1", "r2"]
    assert view.routers[0].sfus == ("a", "b")


def test_an_sfu_that_has_not_said_its_load_is_not_shown_as_idle() -> None:
    row = sfu_row(HeardSfu(SfuState(address="ws://a", sfu="a")))
    assert row.load is None
    assert row.players is None
    assert sfu_row(HeardSfu(SfuState(address="ws://a", load_parts=LoadParts(rooms=0)))).rooms == 0


def test_the_part_that_binds_is_named_once_all_are_known() -> None:
    parts = LoadParts(egress_bps=7e6, streams=900, cpu=0.1)
    assert sfu_row(HeardSfu(SfuState(address="ws://a", load=0.75, load_parts=parts))).binding == "streams"
    assert sfu_row(HeardSfu(SfuState(address="ws://a", load=0.75, load_parts=LoadParts(streams=900)))).binding == ""


BUSY = SfuState(
    address="ws://a",
    sfu="a",
    load=0.75,
    load_parts=LoadParts(egress_bps=7e6, streams=900, cpu=0.1, rooms=3),
    players=9,
    producers=9,
    consumers=72,
)


@pytest.mark.parametrize(("silent_for_s", "status"), [(None, "ONLINE"), (0.4, "ONLINE"), (2.9, "ONLINE")])
def test_an_sfu_that_was_heard_lately_is_told_as_it_is(silent_for_s: float | None, status: str) -> None:
    row = sfu_row(HeardSfu(BUSY, silent_for_s=silent_for_s))
    assert (row.status, row.last_status, row.load, row.players, row.silent_for_s) == (
        status,
        "ONLINE",
        0.75,
        9,
        silent_for_s,
    )
    assert status_words(row) == "ONLINE"


def test_nothing_of_a_silent_sfu_is_told_as_if_it_were_of_now() -> None:
    row = sfu_row(HeardSfu(BUSY, silent_for_s=7.04))
    assert (row.status, row.last_status, row.silent_for_s) == ("SILENT", "ONLINE", 7.0)
    told = (row.load, row.egress_bps, row.streams, row.cpu, row.players, row.rooms, row.producers, row.consumers)
    assert set(told) == {None}
    assert row.parts.egress is None
    assert row.binding == ""


def test_the_table_says_silent_in_place_of_the_last_status_and_load() -> None:
    console = Console(width=200, record=True, highlight=False)
    routers = [HeardRouter(RouterRecord(router="r1", players=5, sfus=("a",)), silent_for_s=4.2)]
    console.print(fleet_table(fleet_view("f", sfus=[HeardSfu(BUSY, silent_for_s=7.04)], routers=routers)))
    _, sfu, last, *_, router = console.export_text().rstrip().splitlines()
    assert sfu.split() == ["a", "silent", "7", "s", "–", "–", "–", "–", "–"]
    assert last.strip() == "a: it said ONLINE"
    assert router.split() == ["r1", "–", "–", "silent", "4", "s"]


def test_the_table_says_who_has_no_media_and_what_is_not_known_is_not_zero() -> None:
    console = Console(width=200, record=True, highlight=False)
    who = (MissingMedia(who="Ann", room="kitchen", missing=("send", "receive")),)
    routers = [
        HeardRouter(RouterRecord(router="r1", players=5, without_media=1, who_without_media=who), silent_for_s=0.2),
        HeardRouter(RouterRecord(router="r2", players=3), silent_for_s=0.2),
    ]
    console.print(fleet_table(fleet_view("f", sfus=[], routers=routers)))
    *_, first, second, named = console.export_text().rstrip().splitlines()
    assert (first.split(), second.split()) == (["r1", "5", "1"], ["r2", "3", "–"])
    assert named.strip() == "no media gets through: Ann in kitchen: can't send or receive"


def test_a_silent_drain_is_what_it_said_last() -> None:
    row = sfu_row(HeardSfu(drained(cause="sigterm", elapsed_s=60.0), silent_for_s=5.0))
    assert drain_of(row) == "it said CORDONED, SIGTERM, for 1 min"


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
