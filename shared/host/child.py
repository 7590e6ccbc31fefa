"""A child process that can't outlive its parent: own process group, own log file, killed by the kernel when we die."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

PR_SET_PDEATHSIG = 1
TAIL_BYTES = 4000
"""How much of a log is shown when a child fails [bytes]."""
_libc = ctypes.CDLL(None, use_errno=True)


def python(module: str, *arguments: str) -> list[str]:
    """The command that runs a module of ours.

    With `-P`: without it, a folder of the module's name in the current directory would run instead.
    """
    return [sys.executable, "-P", "-m", module, *arguments]


def leash(parent: int) -> Callable[[], None]:
    """What a child runs between fork and exec: a group of its own, and SIGKILL when `parent` dies.

    SIGKILL and not SIGTERM, because SIGTERM starts a drain that may take an hour, with no program left to watch it.
    """

    def tie() -> None:
        os.setpgid(0, 0)
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it died before we asked
            os._exit(1)

    return tie


@dataclass(slots=True)
class Child:
    """A started program. `ended_mono` is set when its end has been noticed."""

    name: str
    process: asyncio.subprocess.Process
    log: Path
    ended_mono: float | None = None
    _watch: asyncio.Task[int] | None = field(default=None, repr=False)

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def running(self) -> bool:
        return self.process.returncode is None

    @property
    def exit_code(self) -> int | None:
        """The exit status; negative is the signal that killed it; None while it runs."""
        return self.process.returncode

    async def wait(self, timeout_s: float | None = None) -> int:
        """Its exit status. Raises `TimeoutError` when it still runs after `timeout_s`."""
        assert self._watch is not None
        async with asyncio.timeout(timeout_s):
            return await asyncio.shield(self._watch)

    def send_signal(self, number: int) -> None:
        """Send a signal to the process itself; nothing happens when it has ended."""
        if self.running:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(number)

    def kill_group(self) -> None:
        """SIGKILL for it and all that it has started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    async def stop(self, *, number: int = signal.SIGTERM, within_s: float = 5.0) -> int:
        """Ask it to end, then make it end; its exit status."""
        self.send_signal(number)
        with contextlib.suppress(TimeoutError):
            return await self.wait(within_s)
        self.kill_group()
        return await self.wait()

    def tail(self) -> str:
        """The last lines of its log."""
        return tail(self.log)

    async def _follow(self) -> int:
        code = await self.process.wait()
        self.ended_mono = time.monotonic()
        return code


def tail(log: Path, *, limit: int = TAIL_BYTES) -> str:
    """The last `limit` bytes of a log file, from the start of a line; empty when there is none."""
    try:
        with log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - limit))
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    return text if size <= limit else text.partition("\n")[2]


async def start(
    name: str,
    command: Sequence[str],
    *,
    logs: Path,
    env: Mapping[str, str] | None = None,
    piped: bool = False,
    line_limit: int = 4 * 1024 * 1024,
) -> Child:
    """Start `command`, logging to `logs/NAME.log`.

    `env` is its whole environment; None: ours. With `piped`, its standard input and output are pipes of ours
    (`line_limit`: longest line, bytes) and only standard error is logged. Raises `OSError` when it can't be started.
    """
    log = logs / f"{name}.log"
    with log.open("ab") as sink:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE if piped else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE if piped else sink,
            stderr=sink,
            env=env,
            preexec_fn=leash(os.getpid()),
            limit=line_limit,
        )
    child = Child(name=name, process=process, log=log)
    child._watch = asyncio.create_task(child._follow(), name=f"watch-{name}")
    return child
