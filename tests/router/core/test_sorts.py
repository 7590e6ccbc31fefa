"""What a placement in flight adds to a figure: the SFU's own mean per client, leaning on the fleet's."""

from __future__ import annotations

import pytest

from router.core.selector.sorts import SORTS, Costs, known


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


@pytest.mark.parametrize("figure", [None, -0.1, float("inf"), float("nan"), 1e15])
def test_a_figure_that_cannot_be_is_unknown(figure: float | None) -> None:
    assert known(figure) is None
    assert known(0) == 0
