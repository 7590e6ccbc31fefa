"""SFUs that a roll will replace next go last, while their cell has another one that can take players (D13)."""

from __future__ import annotations

from typing import Any

import pytest

from router.core.rolling import FULL
from router.core.selector.ladder import Preference
from tests.router.core.test_standings import World


@pytest.fixture
def it() -> World:
    world = World()
    for n, sfu in enumerate(("old-1", "old-2", "new")):
        world.report(sfu, n / 10)
    world.standings.roll(["old-1", "old-2"])
    return world


def test_what_is_rolled_next_goes_last_however_idle_it_is(it: World) -> None:
    assert it.order() == ["new", "old-1", "old-2"]
    assert it.why("old-1") == "rolled-next"


def test_the_rule_ends_with_the_roll(it: World) -> None:
    it.standings.roll([])
    assert it.order() == ["old-1", "old-2", "new"]


@pytest.mark.parametrize("fields", [{"load": FULL}, {"load": None}, {"warmed_up": False, "incarnation": 2}])
def test_a_replacement_that_is_full_cold_or_unknown_takes_nobody_s_place(it: World, fields: dict[str, Any]) -> None:
    it.report("new", **({"load": 0.2} | fields))
    assert it.why("old-1") == ""
    assert it.order()[0] == "old-1"
    it.report("new", 0.2, incarnation=3)
    assert it.order()[0] == "new"


def test_among_full_ones_the_replacement_goes_first(it: World) -> None:
    """On a machine that is busy as a whole all SFUs say that they are full."""
    it.report("new", 0.99)
    it.report("old-1", 0.95)
    it.report("old-2", 0.2)
    assert it.order() == ["old-2", "new", "old-1"]


def test_without_a_replacement_the_figure_decides(it: World) -> None:
    it.report("new", 0.2, status="CORDONED")
    assert it.order() == ["old-1", "old-2"]
    assert it.why("old-1") == ""


def test_no_player_is_sent_to_another_cell_for_it(it: World) -> None:
    it.report("far", 0.5, cell="far")
    it.standings.roll(["old-1", "old-2", "far"])
    assert it.order(Preference(cell="far"))[0] == "far"
    it.report("far-new", 0.6, cell="far")
    assert it.order(Preference(cell="far"))[:2] == ["far-new", "new"]


def test_an_sfu_that_has_had_its_turn_is_no_longer_last(it: World) -> None:
    it.standings.roll(["old-2"])
    assert it.order() == ["old-1", "new", "old-2"]


def test_one_that_cannot_reach_its_cells_new_one_still_gets_an_sfu(it: World) -> None:
    assert it.order(avoid="new") == ["old-1", "old-2"]
