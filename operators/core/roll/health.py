"""Failed connections and freezes, read off what routers export; a roll pauses on either."""

from __future__ import annotations

import re
from typing import NamedTuple

from operators.core.roll.troubles import FREEZE_MS

_SAMPLE = re.compile(r"^(\w+)(?:\{le=\"([^\"]+)\"\})? (\S+)$", re.MULTILINE)
_GAPS = ("sluice_router_move_audio_gap_ms", "sluice_router_move_video_gap_ms")


class RouterHealth(NamedTuple):
    """What one process of a router has counted since its start."""

    failed: int = 0
    freezes: int = 0


def read_health(exported: str) -> RouterHealth:
    """From the text of `/metrics`; what is missing or no number there counts as none."""
    samples = {(name, bound): _count(value) for name, bound, value in _SAMPLE.findall(exported)}
    freezes = 0
    for name in _GAPS:
        within = samples.get((f"{name}_bucket", f"{float(FREEZE_MS)}"), 0)
        freezes += max(0, samples.get((f"{name}_count", ""), 0) - within)
    return RouterHealth(failed=samples.get(("sluice_router_ice_failures_total", ""), 0), freezes=freezes)


def grown(before: RouterHealth | None, now: RouterHealth) -> RouterHealth:
    """What has been added since the look before; a router that was started again counts from 0. The first look only
    says where counting begins."""
    if before is None:
        return RouterHealth()
    return RouterHealth(*(new - old if new >= old else new for old, new in zip(before, now, strict=True)))


def _count(value: str) -> int:
    try:
        return int(float(value))
    except (ValueError, OverflowError):
        return 0
