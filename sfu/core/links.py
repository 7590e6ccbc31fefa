"""Which router to link with next, and how long to wait before trying (full jitter)."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from urllib.parse import urlsplit, urlunsplit

from shared.jitter import full_jitter

FIRST_DELAY_S = 0.5
FAILED_FOR_S = 60.0
"""A router that failed is tried after the others for this long (jicofo's failed-node retry)."""
REFUSED_FOR_S = 60.0
"""A router that does not speak our version of the protocol is not tried for this long: only an upgrade changes that."""


def link_url(router: str) -> str:
    """The URL of a router's SFU side; a router is configured as `ws://host:port`, or with a path of its own."""
    parts = urlsplit(router)
    return urlunsplit(parts if parts.path.strip("/") else parts._replace(path="/sfu"))


def choose_router(
    routers: Sequence[str],
    *,
    in_use: Collection[str],
    failed_at: Mapping[str, float],
    refused_at: Mapping[str, float],
    now: float,
    rng: random.Random,
) -> str | None:
    """A router no other link is on: one that has not failed lately, else the one that failed longest ago; None when
    all are in use or have refused our version of the protocol lately."""
    refused = {router for router, at in refused_at.items() if now - at < REFUSED_FOR_S}
    free = [router for router in dict.fromkeys(routers) if router not in in_use and router not in refused]
    sound = [router for router in free if now - failed_at.get(router, float("-inf")) >= FAILED_FOR_S]
    if sound:
        return rng.choice(sound)
    return min(free, key=lambda router: failed_at[router], default=None)


def retry_delay_s(attempt: int, *, rng: random.Random) -> float:
    """Seconds to wait before the `attempt`th try in a row (from 0), drawn from zero to a doubling bound."""
    return full_jitter(attempt, rng, first_s=FIRST_DELAY_S)
