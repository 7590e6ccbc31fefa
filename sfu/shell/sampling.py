"""Reads the counters that load is made of: /proc, the process' own CPU time, the load average."""

from __future__ import annotations

import os
import time
from pathlib import Path

from sfu.core.load.rates import MachineCpu, Sample

_PROC_STAT = Path("/proc/stat")


def take_sample(*, bytes_out: int, bytes_in: int, loop_lag_s: float, now: float) -> Sample:
    """The counters at this moment."""
    return Sample(
        at=now,
        bytes_out=bytes_out,
        bytes_in=bytes_in,
        process_cpu_s=time.process_time(),
        machine=_machine_cpu(),
        sysload=_sysload(),
        loop_lag_s=loop_lag_s,
    )


def _machine_cpu() -> MachineCpu | None:
    """From the first line of /proc/stat: user nice system idle iowait irq softirq steal, in ticks; None elsewhere."""
    try:
        with _PROC_STAT.open() as stat:
            ticks = [int(text) for text in stat.readline().split()[1:9]]
    except (OSError, ValueError):
        return None
    if len(ticks) < 5:
        return None
    second = os.sysconf("SC_CLK_TCK")
    idle = ticks[3] + ticks[4]
    return MachineCpu(busy_s=(sum(ticks) - idle) / second, total_s=sum(ticks) / second)


def _sysload() -> float | None:
    try:
        return round(os.getloadavg()[0] / (os.cpu_count() or 1), 4)
    except OSError:
        return None
