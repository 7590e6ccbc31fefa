"""What a container of an SFU does when its SFU ends: `deploy/sfu.sh`, and the restart policies that it is made for."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "deploy" / "sfu.sh"


def serving(*, ends_with: int, after_s: float = 0.0) -> str:
    """A program that serves until SIGTERM, drains for a while, and ends with this status."""
    code = (
        "import signal, sys, time; "
        f"signal.signal(signal.SIGTERM, lambda *_: (time.sleep({after_s}), sys.exit({ends_with}))); "
        "print('serving', flush=True); time.sleep(600)"
    )
    return f'exec {sys.executable} -c "{code}"'


SERVES = serving(ends_with=0)


class Container:
    """The script's process and what stays of a container's files from start to start."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.id = "aaaa"
        self.process: asyncio.subprocess.Process | None = None

    async def start(self, sfu: str) -> asyncio.subprocess.Process:
        """Start it, with this shell text as the `sluice` command."""
        named = self.home / "hostname"
        named.write_text(f"#!/bin/sh\necho {self.id}\n")
        named.chmod(0o755)
        program = self.home / "sluice"
        program.write_text(f"#!/bin/sh\n{sfu}\n")
        program.chmod(0o755)
        self.process = await asyncio.create_subprocess_exec(
            SCRIPT,
            env={"PATH": f"{self.home}:{os.environ['PATH']}", "HOME": str(self.home)},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        return self.process

    async def says(self, word: str) -> None:
        """Wait for a line with this word."""
        assert self.process is not None
        assert self.process.stdout is not None
        async with asyncio.timeout(20):
            while word not in (line := (await self.process.stdout.readline()).decode()):
                assert line, f"it ended without {word!r}"

    async def status(self) -> int:
        assert self.process is not None
        async with asyncio.timeout(20):
            return await self.process.wait()

    async def end(self) -> None:
        """As the kill of a container: nothing in it goes on."""
        if self.process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        async with asyncio.timeout(20):
            await self.process.communicate()


@pytest.fixture
async def container(tmp_path: Path) -> AsyncIterator[Container]:
    made = Container(tmp_path)
    yield made
    await made.end()


async def test_an_sfu_that_an_operator_drained_does_not_serve_again(container: Container) -> None:
    """Docker starts it again at once, and when the host was restarted."""
    await container.start("exit 0")
    await container.says("parked")
    await container.end()
    process = await container.start(SERVES)
    await container.says("parked")
    process.terminate()
    assert await container.status() == 0


async def test_a_container_made_new_serves_again(container: Container) -> None:
    """What is kept lies in a volume, which outlives the container."""
    await container.start("exit 0")
    await container.says("parked")
    await container.end()
    container.id = "bbbb"
    await container.start(SERVES)
    await container.says("serving")


async def test_a_signal_to_the_whole_group_drains_too(container: Container) -> None:
    """Docker's init gives it to all, so that none is lost just before the script waits."""
    process = await container.start(serving(ends_with=0, after_s=0.3))  # the script passes it on: it comes twice
    await container.says("serving")
    os.killpg(process.pid, signal.SIGTERM)
    assert await container.status() == 0
    await container.start(SERVES)
    await container.says("serving")


async def test_sigterm_drains_and_the_next_start_serves(container: Container) -> None:
    """A shutdown of the host drains each SFU, which ends with status 0 as an ordered drain does."""
    for _ in range(2):
        process = await container.start(SERVES)
        await container.says("serving")
        process.terminate()
        assert await container.status() == 0


async def test_a_drain_may_take_longer_than_the_signal(container: Container) -> None:
    """The script waits for the SFU's end, and gives its status."""
    process = await container.start(serving(ends_with=5, after_s=0.3))
    await container.says("serving")
    process.terminate()
    assert await container.status() == 5


async def test_a_crash_ends_the_container_so_that_docker_starts_it_again(container: Container) -> None:
    await container.start("exit 3")
    assert await container.status() == 3
    await container.start("kill -KILL $$")
    assert await container.status() == 128 + signal.SIGKILL
    await container.start(SERVES)
    await container.says("serving")
