"""The plan of a chaos run: the same for the same seed, and something is healthy at every moment."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from rehearse.core.chaos.events import EVERYTHING, Aim, ChaosKind
from rehearse.core.chaos.plan import MOST_AT_ONCE, WITHIN_S, ChaosPlan

ROUTERS, SFUS = ("router-1", "router-2"), ("sfu-1", "sfu-2", "sfu-3")


def plan(seed: int, *, longest_s: float = 40.0) -> ChaosPlan:
    return ChaosPlan(seed=seed, routers=ROUTERS, sfus=SFUS, longest_s=longest_s)


@given(seed=st.integers(), number=st.integers(1, 10_000))
def test_a_round_depends_on_seed_and_number_only(seed: int, number: int) -> None:
    assert plan(seed).round(number) == plan(seed).round(number) == next(plan(seed).rounds(number))


@given(seed=st.integers(), number=st.integers(1, 10_000), longest_s=st.floats(1.0, 40.0))
def test_one_router_and_one_sfu_are_healthy_at_every_moment(seed: int, number: int, longest_s: float) -> None:
    events = plan(seed, longest_s=longest_s).round(number)
    targets = [event.target for event in events]
    assert len(events) <= MOST_AT_ONCE
    assert len(targets) == len(set(targets)), "two events about one target undo each other"
    assert set(ROUTERS) - set(targets)
    assert set(SFUS) - set(targets)
    if EVERYTHING in targets:
        assert not set(SFUS) & set(targets)
    for event in events:
        assert 0 <= event.offset_s <= WITHIN_S
        assert min(event.traits.least_s, longest_s) <= event.lasts_s <= min(longest_s, event.traits.most_s) + 0.01


def test_a_stall_of_everything_is_alone_in_its_round() -> None:
    rounds = [plan(1).round(number) for number in range(1, 500)]
    stalls = [events for events in rounds if any(event.kind is ChaosKind.STALL_ALL for event in events)]
    assert stalls
    assert all(len(events) == 1 for events in stalls)


def test_a_long_run_has_every_kind_and_all_numbers_differ() -> None:
    events = [event for number in range(1, 500) for event in plan(3).round(number)]
    assert {event.kind for event in events} == set(ChaosKind)
    assert len({event.number for event in events}) == len(events)
    aims = Counter(event.traits.target for event in events)
    assert min(aims[aim] for aim in Aim) > 10
