"""What processes have waited for a CPU."""

from __future__ import annotations

from pathlib import Path

from rehearse.shell.cpu_wait import CpuWaits


def put(proc: Path, pid: int, **waited_ms: int) -> None:
    for thread, waited in waited_ms.items():
        task = proc / str(pid) / "task" / thread
        task.mkdir(parents=True, exist_ok=True)
        (task / "schedstat").write_text(f"123 {waited * 1_000_000} 7\n")


def test_the_thread_that_waited_longest_since_the_last_look_counts(tmp_path: Path) -> None:
    waits = CpuWaits(tmp_path)
    put(tmp_path, 7, main=100, plane=500)
    assert waits.since_last([7]) == {7: 0.0}
    put(tmp_path, 7, main=400, plane=510, new=9000)
    assert waits.since_last([7]) == {7: 0.3}, "a new thread is counted from the next look on"
    assert waits.since_last([7]) == {7: 0.0}


def test_a_process_that_has_ended_or_a_kernel_that_does_not_count_waits_for_nothing(tmp_path: Path) -> None:
    waits = CpuWaits(tmp_path)
    (tmp_path / "8" / "task" / "main").mkdir(parents=True)
    (tmp_path / "8" / "task" / "main" / "schedstat").write_text("nonsense")
    assert waits.since_last([7, 8]) == {}
