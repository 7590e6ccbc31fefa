"""Waits before another try: spread from zero to a bound that doubles and ends."""

from __future__ import annotations

import random

import pytest

from shared.jitter import CAP_S, FIRST_S, full_jitter


@pytest.mark.parametrize(
    ("attempt", "how", "bound"),
    [
        (0, {}, FIRST_S),
        (2, {}, 4 * FIRST_S),
        (50, {}, CAP_S),
        (10**6, {}, CAP_S),
        (0, {"first_s": 0.5}, 0.5),
        (1, {"first_s": 0.2, "cap_s": 5.0}, 0.4),
        (9, {"first_s": 0.2, "cap_s": 5.0}, 5.0),
    ],
)
def test_the_wait_is_drawn_from_zero_to_a_doubling_bound(attempt: int, how: dict[str, float], bound: float) -> None:
    rng = random.Random(1)
    waits = [full_jitter(attempt, rng, **how) for _ in range(500)]
    assert 0.0 <= min(waits) < 0.05 * bound
    assert 0.95 * bound < max(waits) <= bound


def test_the_same_seed_draws_the_same_waits() -> None:
    assert full_jitter(3, random.Random(7)) == full_jitter(3, random.Random(7))
