"""How long this process has been running: the time to a node's first packet counts from its start (A5)."""

from __future__ import annotations

import os
import time
from pathlib import Path

_LOADED = time.monotonic()
_START_FIELD = 19
"""`starttime`, field 22 of /proc/PID/stat, counted after the name in brackets (proc_pid_stat(5))."""


def process_age_s() -> float:
    """Seconds since the process started, the interpreter's own start included where the system tells it."""
    started_s = _started_s()
    if started_s is None:
        return time.monotonic() - _LOADED
    return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - started_s)


def _started_s() -> float | None:
    """When it started, in seconds since the machine did; None where the system does not tell."""
    try:
        after_name = Path("/proc/self/stat").read_text().rpartition(")")[2]
        return int(after_name.split()[_START_FIELD]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return None
