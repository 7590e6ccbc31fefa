"""Full jitter: how long to wait before the next try, so that a crowd that failed together comes back spread out."""

from __future__ import annotations

import random

FIRST_S = 1.0
"""Upper bound of the first wait (docs/protocol.md, section 3)."""
CAP_S = 7.0
"""No wait is longer."""


def full_jitter(attempt: int, rng: random.Random) -> float:
    """Seconds to wait before try number `attempt` (0 is the first), uniform from 0 to the doubling bound."""
    return rng.uniform(0.0, min(CAP_S, FIRST_S * 2.0 ** min(attempt, 16)))
