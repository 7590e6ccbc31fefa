"""Figures of a benchmark: percentiles and memory."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` (0..1] of the values do not exceed (nearest rank).

    Raises `ValueError` for no values.
    """
    if not values:
        raise ValueError("a percentile of no values")
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def resident_bytes(pid: int) -> int:
    """Resident memory of a process, from `/proc/PID/statm` [bytes]."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
