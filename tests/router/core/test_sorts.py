"""What a placement in flight adds to a figure: the SFU's own mean per client, leaning on the fleet's."""

from __future__ import annotations

from typing import Any

import pytest

from router.core.selector import Candidate, Kind, NodeSelector, SortBy
from router.core.selector.node_selector import Limit
from router.core.selector.sorts import SORTS, Costs, known
from shared.records import LoadParts, SfuState


def test_a_busy_sfu_adds_its_own_mean() -> None:
    costs = Costs(SORTS["load"])
    assert costs.of(0.5, 100) == pytest.approx((0.5 + 10 * 0.01) / 110)
    assert costs.of(0.5, 100_000) == SORTS["load"].least
    assert costs.of(50.0, 10) == SORTS["load"].most


def test_an_empty_sfu_adds_what_the_busy_ones_of_the_fleet_do() -> None:
    costs = Costs(SORTS["load"])
    assert costs.of(0.0, 0) == 0.01
    costs.learn("busy", 0.6, 200)
    costs.learn("idle", 0.3, 1)
    assert costs.moved()
    assert costs.typical == pytest.approx(0.7 / 210)
    assert costs.of(0.0, 0) == pytest.approx(costs.typical)
    assert costs.of(None, 0) == costs.typical
    assert not costs.moved()
    costs.learn("busy", None, 0)
    assert costs.moved()
    assert costs.typical == 0.01


def test_clients_and_rooms_are_counted_and_not_estimated() -> None:
    for name in ("clients", "rooms"):
        costs = Costs(SORTS[name])
        costs.learn("busy", 500, 500)
        assert not costs.moved()
        assert costs.of(7, 900) == 1.0


def test_a_random_order_knows_no_costs() -> None:
    costs = Costs(SORTS["random"])
    costs.learn("busy", 0.0, 500)
    assert not costs.moved()
    assert costs.of(0.0, 10) == 0.0


def test_a_setting_takes_the_place_of_the_estimate() -> None:
    costs = Costs(SORTS["load"], fixed=0.002)
    costs.learn("busy", 0.6, 20)
    assert not costs.moved()
    assert costs.of(0.9, 3) == 0.002


@pytest.mark.parametrize("figure", [None, -0.1, float("inf"), float("nan"), 7.0])
def test_a_figure_that_cannot_be_is_unknown(figure: float | None) -> None:
    assert known(figure, absurd=7.0) is None
    assert known(0, absurd=7.0) == 0


@pytest.mark.parametrize(
    ("sort_by", "parts", "possible"),
    [
        ("cpuload", {"cpu": 1.02}, True),
        ("cpuload", {"cpu": 80.0}, False),  # percent in place of a share
        ("sysload", {"sysload": 300.0}, True),
        ("sysload", {"sysload": 1e6}, False),
        ("clients", {"clients": 20_000}, True),
        ("clients", {"clients": 10**9}, False),
        ("rooms", {"rooms": 10**9}, False),
        ("tracks", {"tracks": 10**9}, False),
        ("bytespersec", {"egress_bps": 4e11, "ingress_bps": 4e11}, True),
        ("bytespersec", {"egress_bps": 1e13, "ingress_bps": 0.0}, False),
    ],
)
def test_what_is_absurd_depends_on_what_is_sorted_by(sort_by: str, parts: dict[str, Any], possible: bool) -> None:
    state = SfuState(sfu="s", address="ws://s", load_parts=LoadParts(**parts))
    assert (NodeSelector(sort_by=SortBy(sort_by)).figure(Candidate("s", state)) is not None) is possible


def test_an_absurd_load_is_unknown_and_over_no_limit() -> None:
    state = SfuState(sfu="s", address="ws://s", load=1e9, load_parts=LoadParts(cpu=80.0))
    rank = NodeSelector(kind=Kind.CPULOAD).rank(Candidate("s", state))
    assert (rank.unknown, rank.limit) == (True, Limit.UNKNOWN)
