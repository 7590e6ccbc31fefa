"""A bad network by the numbers: what its settings promise, and the same losses for the same seed."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from client_sim.core.impairment import OVERHEAD_BYTES, ImpairedPath, Impairment
from shared.errors import BadSetting

EVERY_S = 0.005
COUNT = 4000


def path(*, seed: int = 1, **settings: float) -> ImpairedPath:
    return ImpairedPath(Impairment(**settings), rng=random.Random(seed))  # type: ignore[arg-type]


def through(way: ImpairedPath, count: int = COUNT, *, size: int = 1000, every_s: float = EVERY_S) -> list[list[float]]:
    """The delays of each copy of each datagram, one going in every so often."""
    return [[out - n * every_s for out in way.take(size, now=n * every_s)] for n in range(count)]


def in_order_of_arrival(way: ImpairedPath, count: int = COUNT) -> list[int]:
    outs = [(out, n) for n in range(count) for out in way.take(1000, now=n * EVERY_S)]
    return [n for _, n in sorted(outs)]


def test_a_perfect_network_passes_on_at_once_and_in_order() -> None:
    way = path()
    assert through(way) == [[0.0]] * COUNT
    assert (way.counts.taken, way.counts.dropped, way.counts.duplicated, way.counts.overtook) == (COUNT, 0, 0, 0)


def test_loss_takes_its_share() -> None:
    way = path(loss=0.03)
    lost = sum(not copies for copies in through(way))
    assert lost == way.counts.lost
    assert 0.02 * COUNT < lost < 0.04 * COUNT


def test_the_same_seed_has_the_same_losses_whatever_else_is_set() -> None:
    def losses(**settings: float) -> list[bool]:
        return [bool(copies) for copies in through(path(loss=0.1, **settings))]

    plain = losses()
    assert losses(jitter_s=0.02, duplicate=0.2, reorder=0.1) == plain
    assert [bool(copies) for copies in through(path(seed=2, loss=0.1))] != plain


def test_delay_and_jitter_add_up_within_their_bounds() -> None:
    delays = [delay for (delay,) in through(path(delay_s=0.03, jitter_s=0.02))]
    assert 0.03 <= min(delays) < 0.031
    assert 0.049 < max(delays) < 0.05 + 1e-9
    assert sum(delays) / COUNT == pytest.approx(0.04, abs=0.001)


def test_jitter_lets_datagrams_overtake_unless_order_is_kept() -> None:
    free, kept = path(jitter_s=0.02), path(jitter_s=0.02, in_order=True)
    order = in_order_of_arrival(free)
    assert order != sorted(order)
    assert free.counts.overtook > COUNT / 5
    order = in_order_of_arrival(kept)
    assert order == sorted(order)
    assert kept.counts.overtook == 0


def test_held_back_datagrams_are_overtaken_even_where_order_is_kept() -> None:
    way = path(in_order=True, reorder=0.02, reorder_s=0.012)
    order = in_order_of_arrival(way)
    late = sum(after < before for before, after in pairwise(order))
    assert 0.01 * COUNT < late < 0.03 * COUNT
    assert sorted(order) == list(range(COUNT))


def test_duplicates_come_twice() -> None:
    way = path(duplicate=0.05, jitter_s=0.01)
    twice = sum(len(copies) == 2 for copies in through(way))
    assert twice == way.counts.duplicated
    assert 0.04 * COUNT < twice < 0.06 * COUNT


def test_a_slow_link_queues_and_drops_what_would_wait_too_long() -> None:
    way = path(rate_bps=800_000, queue_s=0.1)
    size = 1000 - OVERHEAD_BYTES  # 10 ms each on that link, offered every 5 ms
    delays = through(way, 200, size=size)
    assert delays[0] == [pytest.approx(0.01)]
    assert max(max(copies) for copies in delays if copies) == pytest.approx(0.11, abs=0.005)
    assert way.counts.overflowed == sum(not copies for copies in delays)
    carried = 200 - way.counts.overflowed
    assert carried == pytest.approx(200 * EVERY_S / 0.01 + 0.1 / 0.01, abs=3)


@pytest.mark.parametrize(
    "settings",
    [{"loss": 1.1}, {"loss": -0.1}, {"loss": float("nan")}, {"delay_s": -1.0}, {"jitter_s": float("inf")}],
    ids=str,
)
def test_what_cant_be_is_refused(settings: dict[str, float]) -> None:
    with pytest.raises(BadSetting, match=next(iter(settings))):
        path(**settings)
