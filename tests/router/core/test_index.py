"""The order that is kept gives what sorting gives: for every kind and sort, with ties, missing and absurd figures."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router.core.selector import Candidate, Kind, NodeSelector, Preference, SortBy
from router.core.selector.index import MAX_VIEWS, Index, shuffled
from shared.records import LoadParts, SfuState
from tests.budget import examples

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


def candidate(number: int, state: SfuState, in_flight: int, flags: tuple[bool, bool, bool]) -> Candidate:
    failing, hot, cold = flags
    return Candidate(f"s{number}", state, in_flight=in_flight, cost=0.2, failing=failing, hot=hot, cold=cold)


def standing(selector: NodeSelector, fleet: dict[str, Candidate], wish: Preference, sfu: str) -> tuple[Any, ...]:
    """All that decides; equal for those that only chance tells apart."""
    rank = selector.rank(fleet[sfu])
    return (rank.tier, wish.misses(fleet[sfu].state), rank.value)


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("sort_by", list(SortBy))
@settings(max_examples=examples(25), deadline=None)
@given(fleet=FLEETS, changes=FLEETS, wish=PREFERENCES, count=st.integers(1, 12), seed=st.integers(0, 3))
def test_the_kept_order_is_the_sorted_order(
    kind: Kind, sort_by: SortBy, fleet: list[Any], changes: list[Any], wish: Preference, count: int, seed: int
) -> None:
    selector = NodeSelector(kind=kind, sort_by=sort_by)
    index = Index(selector)
    now: dict[str, Candidate] = {}
    for n, facts in [*enumerate(fleet), *enumerate(changes)]:
        now[f"s{n}"] = candidate(n, *facts)
        index.put(now[f"s{n}"])
        index.best(count=1, usable=lambda _: True, rng=random.Random(seed), preference=wish)  # lists are made early
    for sfu in list(now)[::5]:
        index.drop(sfu)
        del now[sfu]
    usable = {sfu: int(sfu[1:]) % 4 != 3 for sfu in now}
    picks = index.best(count=count, usable=usable.__getitem__, rng=random.Random(seed), preference=wish)
    ordering = selector.order((c for s, c in now.items() if usable[s]), rng=random.Random(seed), preference=wish)
    got = [standing(selector, now, wish, sfu) for sfu in picks.order]
    assert got == [standing(selector, now, wish, sfu) for sfu in ordering.order[:count]]
    assert len(set(picks.order)) == len(picks.order)
    assert picks.limit_ignored == ordering.limit_ignored
    levels = [n for n, level in enumerate(picks.levels) for _ in level]
    rungs = [each[:2] for each in got]
    assert [a == b for a, b in pairwise(rungs)] == [a == b for a, b in pairwise(levels)]


def state(load: float | None, **fields: Any) -> SfuState:
    return SfuState(address="ws://x", load=load, **fields)


def index_of(selector: NodeSelector, *loads: float | None) -> Index:
    index = Index(selector)
    for n, load in enumerate(loads):
        index.put(Candidate(f"s{n}", state(load)))
    return index


def firsts(index: Index, times: int = 900) -> Counter[str]:
    rngs = (random.Random(seed) for seed in range(times))
    return Counter(index.best(count=3, usable=lambda _: True, rng=rng).order[0] for rng in rngs)


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


def test_two_choices_are_drawn_from_the_best_rung_and_go_on_below_it() -> None:
    index = index_of(NodeSelector(two_choices=True), 0.1, 0.2)
    index.put(Candidate("cold", state(0.0), cold=True))
    for seed in range(30):
        best = index.best(count=9, usable=lambda _: True, rng=random.Random(seed)).order
        assert best == ["s0", "s1"]
        best = index.best(count=9, usable=lambda sfu: sfu != "s0", rng=random.Random(seed)).order
        assert best == ["s1", "cold"]


def test_a_preferred_cell_goes_first_and_never_leaves_a_player_without() -> None:
    index = index_of(NodeSelector(), 0.1, 0.2)
    index.put(Candidate("far", state(0.9, cell="east")))
    index.put(Candidate("far-and-cold", state(0.0, cell="east"), cold=True))
    east, mars = Preference(cell="east"), Preference(cell="mars")

    def order(preference: Preference) -> list[str]:
        picks = index.best(count=9, usable=lambda _: True, rng=random.Random(1), preference=preference)
        return picks.order

    assert order(east) == ["far", "s0", "s1", "far-and-cold"]
    assert order(mars) == ["s0", "s1", "far", "far-and-cold"]


def test_a_cell_comes_before_a_version() -> None:
    index = Index(NodeSelector())
    for cell in ("east", "west"):
        for version in ("v1", "v2"):
            index.put(Candidate(f"{cell}-{version}", state(0.5, cell=cell, version=version)))
    wish = Preference(cell="east", version="v2")
    picks = index.best(count=9, usable=lambda _: True, rng=random.Random(1), preference=wish)
    assert picks.order == ["east-v2", "east-v1", "west-v2", "west-v1"]


def test_cells_that_come_and_go_leave_no_lists_behind() -> None:
    index = Index(NodeSelector())
    for n in range(MAX_VIEWS + 200):
        index.put(Candidate("s", state(0.5, cell=f"cell-{n}")))
        picks = index.best(
            count=1, usable=lambda _: True, rng=random.Random(1), preference=Preference(cell=f"cell-{n}")
        )
        assert picks.order == ["s"]
    assert len(index._views) <= MAX_VIEWS


def test_a_fleet_of_many_cells_and_releases_is_not_sorted_again_for_each_choice() -> None:
    index = Index(NodeSelector())
    wishes = [Preference(cell=f"cell-{n % 20}", version=f"v{n // 20}") for n in range(80)]
    for n, wish in enumerate(wishes):
        index.put(Candidate(f"s{n:02}", state(0.5, cell=wish.cell, version=wish.version)))

    def choose() -> dict[tuple[str, str], int]:
        for n, wish in enumerate(wishes):
            picks = index.best(count=1, usable=lambda _: True, rng=random.Random(1), preference=wish)
            assert picks.order == [f"s{n:02}"]
        return {view: id(keys) for view, keys in index._views.items()}

    assert choose() == choose()
    index.put(Candidate("s00", state(0.9, cell="cell-1", version="v1")))
    moved = index.best(count=9, usable=lambda _: True, rng=random.Random(1), preference=wishes[21])
    assert moved.levels[0] == ["s21", "s00"], "lists follow what SFUs report"


def test_a_lazy_shuffle_is_a_shuffle() -> None:
    orders = Counter(tuple(shuffled(2, 5, rng=random.Random(seed))) for seed in range(3000))
    assert len(orders) == 6
    assert all(400 < count < 600 for count in orders.values())
    assert next(shuffled(0, 10**9, rng=random.Random(1))) >= 0, "nothing is made that is not taken"
