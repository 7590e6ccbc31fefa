"""Deadlines are kept in order, by one timer for all."""

from __future__ import annotations

import asyncio
import time

from client_sim.shell.pacer import SLACK_S, Pacer


class Beat:
    """Runs `times` times, every `every_s`."""

    def __init__(self, log: list[str], name: str, *, every_s: float, times: int, start: float) -> None:
        self.log, self.name, self.every_s, self.times, self.due = log, name, every_s, times, start
        self.early_s: list[float] = []

    def run(self, now: float) -> float | None:
        self.log.append(self.name)
        self.early_s.append(self.due - now)
        self.due += self.every_s
        self.times -= 1
        return self.due if self.times else None


async def test_all_run_when_due_and_no_more_than_a_moment_early() -> None:
    pacer, log, start = Pacer(), list[str](), time.monotonic() + 0.01
    fast = Beat(log, "fast", every_s=0.01, times=10, start=start)
    slow = Beat(log, "slow", every_s=0.05, times=2, start=start + 0.001)
    pacer.add(slow, slow.due)
    pacer.add(fast, fast.due)
    deadline = time.monotonic() + 20
    while fast.times or slow.times:
        assert time.monotonic() < deadline, "they did not run"
        await asyncio.sleep(0.005)
    assert (log.count("fast"), log.count("slow")) == (10, 2)
    assert log[0] == "fast"
    assert max(*fast.early_s, *slow.early_s) <= SLACK_S
    pacer.stop()


async def test_after_stop_none_runs() -> None:
    pacer, log = Pacer(), list[str]()
    pacer.add(Beat(log, "x", every_s=0.0, times=1000, start=0.0), time.monotonic() + 0.02)
    pacer.stop()
    await asyncio.sleep(0.05)
    assert log == []
