"""The node selector (P1): every kind and every sort, ties, missing figures."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from router.core.selector.decision import Standing
from router.core.selector.index import Index
from router.core.selector.ladder import NO_PREFERENCE
from router.core.selector.node_selector import NodeSelector, SelectorKind, SortBy
from shared.records import LoadParts, SfuState

Report = tuple[str, SfuState]


def report(sfu: str, *, load: float | None = None, **parts: Any) -> Report:
    return sfu, SfuState(sfu=sfu, address=sfu, load=load, load_parts=LoadParts(**parts))


def best(selector: NodeSelector, *reports: Report, seed: int = 1) -> tuple[list[Standing], bool]:
    """As a router asks: all of them, and whether the limit was ignored."""
    index = Index(selector)
    for sfu, state in reports:
        index.put(selector.standing(sfu, state))
    return index.best(count=9, usable=lambda _: True, rng=random.Random(seed), preference=NO_PREFERENCE)


def order(selector: NodeSelector, *reports: Report, seed: int = 1) -> list[str]:
    return [each.sfu for each in best(selector, *reports, seed=seed)[0]]


@pytest.mark.parametrize(
    ("sort_by", "best", "worst"),
    [
        (SortBy.SYSLOAD, {"sysload": 0.1}, {"sysload": 0.2}),
        (SortBy.CPULOAD, {"cpu": 0.1}, {"cpu": 0.2}),
        (SortBy.ROOMS, {"rooms": 0}, {"rooms": 1}),
        (SortBy.CLIENTS, {"clients": 9}, {"clients": 10}),
        (SortBy.TRACKS, {"tracks": 9}, {"tracks": 10}),
        (SortBy.BYTESPERSEC, {"egress_bps": 10.0, "ingress_bps": 1.0}, {"egress_bps": 1.0, "ingress_bps": 11.0}),
        (SortBy.LOAD, {"load": 0.1}, {"load": 0.2}),
    ],
)
def test_each_sort_puts_the_smallest_figure_first_and_unknown_last(
    sort_by: SortBy, best: dict[str, Any], worst: dict[str, Any]
) -> None:
    selector = NodeSelector(sort_by=sort_by)
    three = [report("worst", **worst), report("unknown"), report("best", **best)]
    assert order(selector, *three) == ["best", "worst", "unknown"]


def test_half_of_a_figure_is_unknown() -> None:
    selector = NodeSelector(sort_by=SortBy.BYTESPERSEC)
    assert order(selector, report("half", egress_bps=0.0), report("whole", egress_bps=9e9, ingress_bps=0.0)) == [
        "whole",
        "half",
    ]


@pytest.mark.parametrize("sort_by", [SortBy.RANDOM, SortBy.LOAD])
def test_ties_are_broken_by_chance_and_evenly(sort_by: SortBy) -> None:
    selector = NodeSelector(sort_by=sort_by)
    equal = [report(name, load=0.5) for name in "abc"]
    firsts = Counter(order(selector, *equal, seed=seed)[0] for seed in range(600))
    assert all(140 < firsts[name] < 260 for name in "abc")


def test_the_same_chance_gives_the_same_order_whatever_the_order_of_the_reports() -> None:
    equal = [report(name, load=0.5) for name in "abcd"]
    assert order(NodeSelector(), *equal) == order(NodeSelector(), *reversed(equal))


@pytest.mark.parametrize(
    ("kind", "figure"), [(SelectorKind.CPULOAD, "cpu"), (SelectorKind.SYSLOAD, "sysload")], ids=["cpuload", "sysload"]
)
class TestLimits:
    def test_above_the_limit_comes_after_all_others(self, kind: SelectorKind, figure: str) -> None:
        selector = NodeSelector(node_selector_kind=kind, sort_by=SortBy.LOAD)
        over = report("over", load=0.1, **{figure: 0.91})
        at_limit = report("at-limit", load=0.9, **{figure: 0.9})
        standings, ignored = best(selector, over, at_limit)
        assert [(it.sfu, it.passed_over) for it in standings] == [("at-limit", ""), ("over", f"{kind}-over-limit")]
        assert not ignored

    def test_a_limit_that_leaves_none_is_ignored(self, kind: SelectorKind, figure: str) -> None:
        selector = NodeSelector(node_selector_kind=kind, sort_by=SortBy.LOAD)
        standings, ignored = best(
            selector, report("b", load=0.6, **{figure: 1.0}), report("a", load=0.5, **{figure: 2.0})
        )
        assert [it.sfu for it in standings] == ["a", "b"]
        assert ignored

    def test_unknown_is_not_overloaded_and_not_preferred(self, kind: SelectorKind, figure: str) -> None:
        selector = NodeSelector(node_selector_kind=kind, sort_by=SortBy.RANDOM)
        known, unknown, over = (
            report("known", **{figure: 0.8}),
            report("unknown"),
            report("over", **{figure: 0.99}),
        )
        for seed in range(20):
            assert order(selector, over, unknown, known, seed=seed) == ["known", "unknown", "over"]
            assert order(selector, over, unknown, seed=seed) == ["over", "unknown"]
            assert order(selector, unknown, seed=seed) == ["unknown"]

    def test_the_limit_is_a_setting(self, kind: SelectorKind, figure: str) -> None:
        selector = NodeSelector(node_selector_kind=kind, sort_by=SortBy.LOAD, cpu_load_limit=0.5, sysload_limit=0.5)
        over, within = report("over", load=0.1, **{figure: 0.6}), report("within", load=0.9, **{figure: 0.4})
        assert order(selector, over, within) == ["within", "over"]


def test_any_has_no_limit() -> None:
    hot = report("hot", load=0.1, cpu=5.0, sysload=5.0)
    assert order(NodeSelector(node_selector_kind=SelectorKind.ANY), hot, report("cool", load=0.2)) == ["hot", "cool"]


def test_of_none_none_is_chosen() -> None:
    assert order(NodeSelector()) == []
