"""The order that is kept gives what sorting gives: for every kind and sort, with ties, missing and absurd figures."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router.core.selector.decision import Standing
from router.core.selector.index import MAX_VIEWS, Index, shuffled
from router.core.selector.ladder import NO_PREFERENCE, Preference
from router.core.selector.node_selector import NodeSelector, SelectorKind, SortBy
from shared.records import LoadParts, SfuState
from tests.budget import examples
from tests.router.core.plain_order import plain_order

SELECTOR = NodeSelector()
FEW = st.sampled_from([None, 0.0, 0.1, 0.5, 0.9, 0.95, 2.0, -1.0, float("inf"), 1e30])
COUNTS = st.sampled_from([None, 0, 1, 2, 7, -3])
PARTS = st.builds(
    LoadParts,
    cpu=FEW,
    sysload=FEW,
    egress_bps=FEW,
    ingress_bps=FEW,
    rooms=COUNTS,
    clients=COUNTS,
    tracks=COUNTS,
)
STATES = st.builds(
    SfuState,
    address=st.just("ws://x"),
    load=FEW,
    load_parts=PARTS,
    cell=st.sampled_from(["default", "east"]),
    version=st.sampled_from(["v1", "v2"]),
)
FLAGS = st.tuples(st.booleans(), st.booleans(), st.booleans())
FLEETS = st.lists(st.tuples(STATES, st.integers(0, 3), FLAGS), max_size=12)
PREFERENCES = st.builds(Preference, cell=st.sampled_from(["", "east", "mars"]), version=st.sampled_from(["", "v2"]))


def standing(
    selector: NodeSelector, number: int, state: SfuState, in_flight: int, flags: tuple[bool, bool, bool]
) -> Standing:
    failing, too_fast, cold = flags
    return selector.standing(
        f"s{number}", state, in_flight=in_flight, cost=0.2, failing=failing, too_fast=too_fast, cold=cold
    )


@pytest.mark.parametrize("kind", list(SelectorKind))
@pytest.mark.parametrize("sort_by", list(SortBy))
@settings(max_examples=examples(25), deadline=None)
@given(fleet=FLEETS, changes=FLEETS, wish=PREFERENCES, count=st.integers(1, 12), seed=st.integers(0, 3))
def test_the_kept_order_is_the_sorted_order(
    kind: SelectorKind, sort_by: SortBy, fleet: list[Any], changes: list[Any], wish: Preference, count: int, seed: int
) -> None:
    selector = NodeSelector(node_selector_kind=kind, sort_by=sort_by)
    index = Index(selector)
    now: dict[str, Standing] = {}
    for n, facts in [*enumerate(fleet), *enumerate(changes)]:
        now[f"s{n}"] = standing(selector, n, *facts)
        index.put(now[f"s{n}"])
        index.best(count=1, usable=lambda _: True, rng=random.Random(seed), preference=wish)  # lists are made early
    for sfu in list(now)[::5]:
        index.drop(sfu)
        del now[sfu]
    usable = {sfu: int(sfu[1:]) % 4 != 3 for sfu in now}
    got, ignored = index.best(count=count, usable=usable.__getitem__, rng=random.Random(seed), preference=wish)
    left = (each for sfu, each in now.items() if usable[sfu])
    wanted, ignored_there = plain_order(selector, left, preference=wish, rng=random.Random(seed))
    assert [each.order for each in got] == [each.order for each in wanted[:count]]
    assert len({each.sfu for each in got}) == len(got)
    assert ignored == ignored_there
    same = {each.sfu: each for each in wanted}
    assert all(each == same[each.sfu] for each in got), "with the reasons that put each behind others"


def state(load: float | None, **fields: Any) -> SfuState:
    return SfuState(address="ws://x", load=load, **fields)


def index_of(selector: NodeSelector, *loads: float | None) -> Index:
    index = Index(selector)
    for n, load in enumerate(loads):
        index.put(selector.standing(f"s{n}", state(load)))
    return index


def order(index: Index, preference: Preference = NO_PREFERENCE, *, but: str = "", seed: int = 1) -> list[str]:
    best, _ = index.best(count=9, usable=lambda sfu: sfu != but, rng=random.Random(seed), preference=preference)
    return [each.sfu for each in best]


def firsts(index: Index, times: int = 900) -> Counter[str]:
    return Counter(order(index, seed=seed)[0] for seed in range(times))


def test_ties_are_broken_by_chance_and_evenly() -> None:
    tied = firsts(index_of(NodeSelector(), 0.5, 0.2, 0.2, 0.2, None))
    assert set(tied) == {"s1", "s2", "s3"}
    assert all(220 < count < 380 for count in tied.values())


def test_two_choices_takes_the_better_of_two_drawn_evenly() -> None:
    index = index_of(NodeSelector(two_choices=True), 0.1, 0.2, 0.3)
    counts = firsts(index)
    assert 520 < counts["s0"] < 680, "two of three pairs hold the best"
    assert 220 < counts["s1"] < 380, "one pair has the second as its better"
    assert counts["s2"] == 0


def test_two_choices_are_drawn_from_the_best_rank_and_go_on_below_it() -> None:
    selector = NodeSelector(two_choices=True)
    index = index_of(selector, 0.1, 0.2)
    index.put(selector.standing("cold", state(0.0), cold=True))
    for seed in range(30):
        assert order(index, seed=seed) == ["s0", "s1"]
        assert order(index, but="s0", seed=seed) == ["s1", "cold"]


def test_a_preferred_cell_goes_first_and_never_leaves_a_player_without() -> None:
    index = index_of(SELECTOR, 0.1, 0.2)
    index.put(SELECTOR.standing("far", state(0.9, cell="east")))
    index.put(SELECTOR.standing("far-and-cold", state(0.0, cell="east"), cold=True))
    assert order(index, Preference(cell="east")) == ["far", "s0", "s1", "far-and-cold"]
    assert order(index, Preference(cell="mars")) == ["s0", "s1", "far", "far-and-cold"]


def test_a_cell_comes_before_a_version() -> None:
    index = Index(SELECTOR)
    for cell in ("east", "west"):
        for version in ("v1", "v2"):
            index.put(SELECTOR.standing(f"{cell}-{version}", state(0.5, cell=cell, version=version)))
    wish = Preference(cell="east", version="v2")
    assert order(index, wish) == ["east-v2", "east-v1", "west-v2", "west-v1"]


def test_cells_that_come_and_go_leave_no_lists_behind() -> None:
    index = Index(SELECTOR)
    for n in range(MAX_VIEWS + 200):
        index.put(SELECTOR.standing("s", state(0.5, cell=f"cell-{n}")))
        assert order(index, Preference(cell=f"cell-{n}")) == ["s"]
    assert len(index._views) <= MAX_VIEWS


def test_a_fleet_of_many_cells_and_releases_is_not_sorted_again_for_each_choice() -> None:
    index = Index(SELECTOR)
    wishes = [Preference(cell=f"cell-{n % 20}", version=f"v{n // 20}") for n in range(80)]
    for n, wish in enumerate(wishes):
        index.put(SELECTOR.standing(f"s{n:02}", state(0.5, cell=wish.cell, version=wish.version)))

    def choose() -> dict[tuple[str, str], int]:
        for n, wish in enumerate(wishes):
            assert order(index, wish)[0] == f"s{n:02}"
        return {view: id(keys) for view, keys in index._views.items()}

    assert choose() == choose()
    index.put(SELECTOR.standing("s00", state(0.9, cell="cell-1", version="v1")))
    assert order(index, wishes[21])[:2] == ["s21", "s00"], "lists follow what SFUs report"


def test_a_lazy_shuffle_is_a_shuffle() -> None:
    orders = Counter(tuple(shuffled(2, 5, rng=random.Random(seed))) for seed in range(3000))
    assert len(orders) == 6
    assert all(400 < count < 600 for count in orders.values())
    assert next(shuffled(0, 10**9, rng=random.Random(1))) >= 0, "nothing is made that is not taken"
