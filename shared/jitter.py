"""Full jitter: how long to wait before the next try, so that a crowd that failed together comes back spread out."""

from __future__ import annotations

import random

FIRST_S = 1.0
"""Upper bound of a player's first wait (docs/protocol.md, section 3)."""
CAP_S = 7.0
"""No wait of a player or an SFU is longer."""


def full_jitter(attempt: int, rng: random.Random, *, first_s: float = FIRST_S, cap_s: float = CAP_S) -> float:
    """Seconds to wait before try number `attempt` (0 is the first), uniform from 0 to a bound.

    The bound is `first_s` at first, doubles with each try and ends at `cap_s`.
    """
    return rng.uniform(0.0, min(cap_s, first_s * 2.0 ** min(attempt, 16)))
