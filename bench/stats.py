"""Figures of a benchmark: percentiles, memory and CPU."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence
from pathlib import Path

_SCHED = 2
"""`CPUCLOCK_SCHED` of Linux: with the complement of a process id it names the clock of that process' CPU."""


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


def cpu_seconds(pid: int) -> tuple[float, float]:
    """User and system CPU of a process, all threads [s].

    Their sum is exact: it is the process' CPU clock, of which `/proc/PID/stat` shows whole ticks of 10 ms, none at all
    over a short look at an idle server. How it is divided is known to a tick. Raises `OSError` for no such process.
    """
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    user_s = int(after_name[11]) / os.sysconf("SC_CLK_TCK")
    return user_s, time.clock_gettime((~pid << 3) | _SCHED) - user_s
