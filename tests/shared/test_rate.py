"""How fast a peer may ask: so much on average, so much at once, and nothing is lost by a refusal."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from shared.rate import MESSAGE_BURST, MESSAGES_PER_S, TokenBucket


def test_fifty_messages_a_second_with_bursts_of_a_hundred() -> None:
    assert (MESSAGES_PER_S, MESSAGE_BURST) == (50.0, 100.0)
    rate = TokenBucket(now=0.0)
    assert all(rate.take(now=0.0) for _ in range(100))
    assert not rate.take(now=0.0)
    rate = TokenBucket(now=0.0)
    assert all(rate.take(now=n / 50) for n in range(1000))


def test_what_is_refused_costs_nothing() -> None:
    rate = TokenBucket(now=0.0, per_s=1.0, burst=4.0)
    assert not rate.take(5, now=0.0)
    assert rate.take(4, now=0.0)


@given(asks=st.lists(st.tuples(st.floats(0, 10), st.floats(0.1, 20)), max_size=50))
def test_in_no_stretch_of_time_more_is_taken_than_burst_and_rate_allow(asks: list[tuple[float, float]]) -> None:
    rate, now = TokenBucket(now=0.0, per_s=2.0, burst=10.0), 0.0
    taken = []
    for pause, cost in asks:
        now += pause
        if rate.take(cost, now=now):
            taken.append((now, cost))
    for first in range(len(taken)):
        span = taken[-1][0] - taken[first][0] if taken else 0.0
        assert sum(cost for _, cost in taken[first:]) <= 10.0 + 2.0 * span + 1e-6
