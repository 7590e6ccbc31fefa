"""How long processes have waited for a CPU, by the kernel's count: what a gap owes to a machine with other work."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

PROC = Path("/proc")


class CpuWaits:
    """Ask it about processes again and again. Where the kernel does not count (`CONFIG_SCHED_INFO`), nothing waits."""

    def __init__(self, proc: Path = PROC) -> None:
        self._proc = proc
        self._known: dict[tuple[int, str], int] = {}

    def since_last(self, pids: Iterable[int]) -> dict[int, float]:
        """Of each process: the wait of the thread that waited longest since the last call [s]; 0 at the first."""
        now = {(pid, thread): waited for pid in pids for thread, waited in self._threads(pid)}
        waits: dict[int, float] = {}
        for (pid, thread), waited in now.items():
            delta = (waited - self._known.get((pid, thread), waited)) / 1e9
            waits[pid] = max(waits.get(pid, 0.0), delta)
        self._known = now
        return waits

    def _threads(self, pid: int) -> Iterable[tuple[str, int]]:
        """Each thread, and for how many nanoseconds it has waited so far: the second number of its `schedstat`."""
        for path in self._proc.glob(f"{pid}/task/*/schedstat"):
            with contextlib.suppress(OSError, ValueError, IndexError):
                yield path.parent.name, int(path.read_text().split()[1])
