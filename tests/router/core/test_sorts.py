"""What a placement in flight adds to a figure: the SFU's own mean per client, leaning on the fleet's."""

from __future__ import annotations

from typing import Any

import pytest

from router.core.selector.ladder import LIMIT_UNKNOWN, UNKNOWN
from router.core.selector.node_selector import NodeSelector, SelectorKind, SortBy
from router.core.selector.sorts import SORTS, Costs, clients_of, known
from shared.placing import OTHER
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


@pytest.mark.parametrize("figure", [None, -0.1, float("inf"), float("nan"), 7.0])
def test_a_figure_that_cannot_be_is_unknown(figure: float | None) -> None:
    assert known(figure, absurd=7.0) is None
    assert known(0, absurd=7.0) == 0


@pytest.mark.parametrize(
    ("sort_by", "parts", "possible"),
    [
        ("random", {}, True),
        ("cpuload", {}, False),
        ("cpuload", {"cpu": 1.02}, True),
        ("cpuload", {"cpu": 9.9}, True),
        ("cpuload", {"cpu": 10.0}, False),
        ("cpuload", {"cpu": -0.01}, False),
        ("cpuload", {"cpu": 80.0}, False),  # percent in place of a share
        ("sysload", {"sysload": 300.0}, True),
        ("sysload", {"sysload": 1e4}, False),
        ("clients", {"clients": 20_000}, True),
        ("clients", {"clients": 10**6 - 1}, True),
        ("clients", {"clients": 10**6}, False),
        ("clients", {"clients": -1}, False),
        ("rooms", {"rooms": 10**6 - 1}, True),
        ("rooms", {"rooms": 10**6}, False),
        ("rooms", {"rooms": -1}, False),
        ("tracks", {"tracks": 10**7 - 1}, True),
        ("tracks", {"tracks": 10**7}, False),
        ("tracks", {"tracks": -1}, False),
        ("bytespersec", {"egress_bps": 4e11, "ingress_bps": 4e11}, True),
        ("bytespersec", {"egress_bps": 1e12, "ingress_bps": 0.0}, False),
        ("bytespersec", {"egress_bps": 0.0, "ingress_bps": 1e12}, False),
        ("bytespersec", {"egress_bps": 1e9, "ingress_bps": -1.0}, False),
        ("bytespersec", {"egress_bps": -1.0, "ingress_bps": 1e9}, False),
        ("bytespersec", {"egress_bps": 1e9}, False),
        ("bytespersec", {"ingress_bps": 1e9}, False),
    ],
)
def test_what_is_absurd_depends_on_what_is_sorted_by(sort_by: str, parts: dict[str, Any], possible: bool) -> None:
    state = SfuState(sfu="s", address="ws://s", load_parts=LoadParts(**parts))
    assert (NodeSelector(sort_by=SortBy(sort_by)).figure(state) is not None) is possible


@pytest.mark.parametrize(
    ("load", "possible"), [(None, False), (-0.01, False), (99.9, True), (100.0, False), (float("nan"), False)]
)
def test_a_load_of_a_hundred_ceilings_is_unknown(load: float | None, possible: bool) -> None:
    state = SfuState(sfu="s", address="ws://s", load=load)
    assert (NodeSelector(sort_by=SortBy.LOAD).figure(state) is not None) is possible


@pytest.mark.parametrize(("clients", "counted"), [(None, 0), (-5, 0), (7, 7), (10**6 - 1, 10**6 - 1), (10**6, 0)])
def test_clients_that_can_not_be_are_not_counted(clients: int | None, counted: int) -> None:
    assert clients_of(SfuState(sfu="s", address="ws://s", load_parts=LoadParts(clients=clients))) == counted


@pytest.mark.parametrize("absurd", [{"load": 1e-6}, {"load": 99.9}])
def test_one_odd_report_moves_what_a_join_costs_within_bounds(absurd: dict[str, float]) -> None:
    sort = SORTS["load"]
    costs = Costs(sort)
    costs.learn("odd", absurd["load"], 10**6 - 1 if absurd["load"] < 1 else 10)
    costs.moved()
    assert sort.least <= costs.typical <= sort.most
    assert costs.typical in (sort.least, sort.most)


def test_an_absurd_load_is_unknown_and_over_no_limit() -> None:
    state = SfuState(sfu="s", address="ws://s", load=1e9, load_parts=LoadParts(cpu=80.0))
    selector = NodeSelector(node_selector_kind=SelectorKind.CPULOAD)
    assert selector.standing("s", state).rank == OTHER | UNKNOWN | LIMIT_UNKNOWN
