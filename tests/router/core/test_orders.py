"""Forced exits (D8) and operators' commands: whom they reach, and how often."""

from __future__ import annotations

import pytest

from router.core.links import Boots
from router.core.orders import LinkedSfu, OrderBook, applies, concerns, message_of
from shared.messages.link import Cordon, Uncordon
from shared.records import ExitOrder, SfuCommand, SfuStatus


def sfu(**facts: object) -> LinkedSfu:
    plain: dict[str, object] = {
        "sfu": "s",
        "incarnation": 1,
        "version": "v1",
        "status": SfuStatus.CORDONED,
        "started_at": 100.0,
        "cordoned_at": 200.0,
    }
    return LinkedSfu(**(plain | facts))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("scope", "target", "facts", "reached"),
    [
        ("all-cordoned", "", {}, True),
        ("version", "v1", {}, True),
        ("version", "v2", {}, False),
        ("sfu", "s", {}, True),
        ("sfu", "t", {}, False),
        ("everything", "", {}, False),
        ("all-cordoned", "", {"status": SfuStatus.ONLINE}, False),
        ("all-cordoned", "", {"status": SfuStatus.TERMINATING}, False),
        ("all-cordoned", "", {"cordoned_at": 300.0}, False),
        ("all-cordoned", "", {"cordoned_at": 301.0}, False),
        ("all-cordoned", "", {"started_at": 301.0}, False),
        ("sfu", "s", {"cordoned_at": None}, False),
        ("sfu", "s", {"started_at": None}, False),
    ],
)
def test_an_exit_order_reaches_what_was_cordoned_and_started_before_it(
    scope: str, target: str, facts: dict[str, object], reached: bool
) -> None:
    assert applies(ExitOrder(scope=scope, target=target, at=300.0), sfu(**facts)) is reached


def test_an_order_is_sent_once_and_again_only_over_a_new_link_or_to_a_new_process() -> None:
    book, order = OrderBook(), ExitOrder(scope="sfu", target="s", at=300.0)
    assert len(book.exits([order], [sfu()])) == 1
    assert book.exits([order], [sfu()]) == []
    assert len(book.exits([ExitOrder(scope="sfu", target="s", at=400.0)], [sfu()])) == 1
    book.forget("s")
    assert len(book.exits([order], [sfu()])) == 1
    assert len(book.exits([order], [sfu(incarnation=2)])) == 1


@pytest.mark.parametrize(
    ("command", "facts", "concerned"),
    [
        ({}, {}, True),
        ({"sfu": "t"}, {}, False),
        ({"verb": "paint"}, {}, False),
        ({"at": 99.0}, {}, False),
        ({}, {"started_at": None}, False),
    ],
)
def test_a_command_is_for_the_process_that_ran_when_it_was_given(
    command: dict[str, object], facts: dict[str, object], concerned: bool
) -> None:
    plain: dict[str, object] = {"command": "c1", "verb": "drain", "sfu": "s", "at": 300.0}
    assert concerns(SfuCommand(**(plain | command)), sfu(**facts)) is concerned  # type: ignore[arg-type]


def test_only_the_newest_command_is_sent_and_once() -> None:
    book = OrderBook()
    old = SfuCommand(command="c1", verb="drain", sfu="s", at=300.0)
    new = SfuCommand(command="c2", verb="uncordon", sfu="s", at=301.0)
    assert [c.command for _, c in book.commands([new, old], [sfu()])] == ["c2"]
    assert book.commands([new, old], [sfu()]) == []


@pytest.mark.parametrize(
    ("boot", "incarnation", "known", "floor"),
    [
        ("first", 5, 5, 0),  # the same process, linked to another router as well
        ("first", 4, 5, 5),  # its clock went back
        ("second", 5, 5, 5),  # another process with the same number
        ("second", 6, 5, 0),
        ("second", 5, 0, 5),
    ],
)
def test_the_floor_makes_each_start_of_an_sfu_newer_than_the_last(
    boot: str, incarnation: int, known: int, floor: int
) -> None:
    boots = Boots()
    boots.note("s", "first", 5)
    assert boots.floor("s", boot, incarnation, known=known) == floor


def test_a_router_that_knows_no_process_takes_an_equal_incarnation_for_the_same() -> None:
    assert Boots().floor("s", "any", 5, known=5) == 0


def test_a_leased_cordon_reaches_the_sfu_with_its_lease_its_deadline_and_its_token() -> None:
    given = SfuCommand(
        command="c1",
        verb="cordon",
        sfu="s",
        by="autoscaler",
        reason="quiet",
        lease_s=3600.0,
        drain_max_s=900.0,
        token=7,
    )
    assert message_of(given) == Cordon(
        command="c1", by="autoscaler", reason="quiet", lease_s=3600.0, drain_max_s=900.0, token=7
    )
    assert message_of(SfuCommand(command="c2", verb="uncordon", sfu="s", by="autoscaler", token=7)) == Uncordon(
        command="c2", by="autoscaler", token=7
    )
    assert message_of(SfuCommand(command="c3", verb="drain", sfu="s", by="ann")) == Cordon(
        command="c3", by="ann", exit_when_empty=True
    )
