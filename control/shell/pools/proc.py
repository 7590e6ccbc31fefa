"""Processes as /proc shows them: found again by a mark in their environment, and never confused with another process of
the same id."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

_PROC = Path("/proc")
_STATE, _STARTED = 0, 19
"""Fields 3 and 22 of proc_pid_stat(5), counted after the name, which may hold spaces and brackets."""


def started_ticks(pid: int) -> int | None:
    """When a process that runs was started [clock ticks since boot]; None when there is none, or only a zombie."""
    try:
        rest = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
        return None if rest[_STATE] in "ZX" else int(rest[_STARTED])
    except (OSError, IndexError, ValueError):
        return None


def marked(variable: str) -> Iterator[tuple[int, str]]:
    """The processes of ours whose environment has this variable, with its value; those that run, in no order."""
    wanted = f"{variable}=".encode()
    for entry in _PROC.iterdir():
        if not entry.name.isdigit():
            continue
        try:
            environ = (entry / "environ").read_bytes()
        except OSError:  # ended meanwhile, or another user's
            continue
        for item in environ.split(b"\0"):
            if item.startswith(wanted):
                yield int(entry.name), item[len(wanted) :].decode(errors="replace")


def send(pid: int, started: int, number: signal.Signals) -> bool:
    """Signal the process that was started then, and no later one of its id; False when it has ended."""
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if started_ticks(pid) != started:
            return False
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(handle, number)
            return True
        return False
    finally:
        os.close(handle)


def spawn(command: list[str], *, environ: dict[str, str], log: Path) -> int:
    """Start a process that outlives us, in a session of its own; its id. Raises `OSError`."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    return os.posix_spawn(
        command[0],
        command,
        environ,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), flags, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
        setsigmask=(),
    )


def reap(pid: int) -> int | None:
    """Its exit status when it is a child of ours that has ended; negative: the signal that killed it."""
    try:
        done, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return None
    return os.waitstatus_to_exitcode(status) if done else None
